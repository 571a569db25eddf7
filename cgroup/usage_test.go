package cgroup

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/exit"
)

func TestUsage(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tests := []struct {
		dir  string
		want *exit.Resources
	}{
		{"hosts/v2/sys/fs/cgroup/jobs/run-1", &exit.Resources{
			MemPeak: n(67112960), SwapPeak: n(4096), OOMKills: n(1), MemSomeUsec: n(9212), MemFullUsec: n(8101),
			CPUUsec: n(11057714), ThrottledUsec: n(139381), Throttled: n(17), PidsPeak: n(9),
		}},
		{"hosts/v2-old-kernel/sys/fs/cgroup/jobs/run-1", &exit.Resources{
			OOMKills: n(1), CPUUsec: n(11057714), ThrottledUsec: n(139381), Throttled: n(17),
		}},
		// The root of all cgroups has few of the files.
		{"hosts/v2-root/sys/fs/cgroup", &exit.Resources{MemSomeUsec: n(9212), MemFullUsec: n(8101), CPUUsec: n(11268000)}},
		{"hosts/hybrid/sys/fs/cgroup/memory/docker/0a1b", nil},
		{"usage/unknown-keys", &exit.Resources{
			MemPeak: n(33554432), SwapPeak: n(0), OOMKills: n(2), MemSomeUsec: n(11), MemFullUsec: n(12),
			CPUUsec: n(21), ThrottledUsec: n(23), Throttled: n(22), PidsPeak: n(1),
		}},
		{"usage/max", &exit.Resources{CPUUsec: n(21)}},
		{"usage/empty", nil},
		{"usage/past-2-53", &exit.Resources{MemPeak: n(1<<53 - 1), MemFullUsec: n(3), CPUUsec: n(1<<53 - 2)}},
		{"usage/not-numbers", nil},
		{"usage/no-cpu-controller", &exit.Resources{MemPeak: n(4096), CPUUsec: n(11268000)}},
		{"usage/no-memory-controller", &exit.Resources{CPUUsec: n(7), ThrottledUsec: n(0), Throttled: n(0), PidsPeak: n(2)}},
		{"usage/some-without-full", &exit.Resources{MemSomeUsec: n(9212)}},
		// The time of cgroup v1 is in nanoseconds, under another name.
		{"usage/v1", nil},
		{"usage/is-not-there", nil},
	}
	for _, tt := range tests {
		dir := filepath.Join("testdata", tt.dir)
		if diff := cmp.Diff(tt.want, Usage(dir)); diff != "" {
			t.Errorf("Usage(%q) (-want +got):\n%s", tt.dir, diff)
		}
		if diff := cmp.Diff(tt.want, UsageFS(os.DirFS(dir))); diff != "" {
			t.Errorf("UsageFS(%q) (-want +got):\n%s", tt.dir, diff)
		}
	}
}

// Every tree of testdata/usage stands in the table above.
func TestUsageTreesAreUsed(t *testing.T) {
	trees, err := os.ReadDir("testdata/usage")
	if err != nil || len(trees) != 9 {
		t.Errorf("testdata/usage has %d trees, %v, want the 9 that TestUsage reads", len(trees), err)
	}
}

// refusing is a cgroup some of whose files fail at a read or at an open, as
// pressure files do on a kernel that has PSI off.
type refusing struct {
	fs.FS
	atOpen, atRead map[string]error
}

func (r refusing) Open(name string) (fs.File, error) {
	if err := r.atOpen[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := r.FS.Open(name)
	if err == nil && r.atRead[name] != nil {
		return failingFile{f, r.atRead[name]}, nil
	}
	return f, err
}

type failingFile struct {
	fs.File
	err error
}

func (f failingFile) Read([]byte) (int, error) { return 0, f.err }

var _ io.Reader = failingFile{}

func TestUsageOfFilesThatFail(t *testing.T) {
	tree := os.DirFS("testdata/hosts/v2/sys/fs/cgroup/jobs/run-1")
	whole := UsageFS(tree)
	fields := map[string]func(*exit.Resources){
		"memory.peak":      func(r *exit.Resources) { r.MemPeak = nil },
		"memory.swap.peak": func(r *exit.Resources) { r.SwapPeak = nil },
		"memory.events":    func(r *exit.Resources) { r.OOMKills = nil },
		"memory.pressure":  func(r *exit.Resources) { r.MemSomeUsec, r.MemFullUsec = nil, nil },
		"cpu.stat":         func(r *exit.Resources) { r.CPUUsec, r.ThrottledUsec, r.Throttled = nil, nil, nil },
		"pids.peak":        func(r *exit.Resources) { r.PidsPeak = nil },
	}
	all := map[string]error{}
	for name, drop := range fields {
		want := *whole
		drop(&want)
		for _, err := range []error{syscall.EOPNOTSUPP, syscall.ENODEV, syscall.EACCES, syscall.EIO} {
			one := map[string]error{name: err}
			for i, failing := range []fs.FS{refusing{tree, one, nil}, refusing{tree, nil, one}} {
				// A job is sampled many times: the answer stays the same.
				for range 3 {
					if diff := cmp.Diff(&want, UsageFS(failing)); diff != "" {
						t.Fatalf("UsageFS with %s failing with %v (case %d) (-want +got):\n%s", name, err, i, diff)
					}
				}
			}
		}
		all[name] = syscall.EOPNOTSUPP
	}
	if got := UsageFS(refusing{tree, all, nil}); got != nil {
		t.Errorf("UsageFS with every file failing = %v, want nil", got)
	}
}

func TestUsageOfALongFile(t *testing.T) {
	stat := []byte("usage_usec 5\n")
	for len(stat) < fileSize-10 {
		stat = append(stat, "filler_usec 1\n"...)
	}
	stat = append(stat[:fileSize-16], "\nnr_throttled 123456\n"...) // Cut inside the number.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cpu.stat"), stat, 0o600); err != nil {
		t.Fatal(err)
	}
	n := int64(5)
	want := &exit.Resources{CPUUsec: &n}
	if diff := cmp.Diff(want, Usage(dir)); diff != "" {
		t.Errorf("Usage of a cpu.stat of %d bytes (-want +got):\n%s", len(stat), diff)
	}
	if diff := cmp.Diff(want, UsageFS(os.DirFS(dir))); diff != "" {
		t.Errorf("UsageFS of a cpu.stat of %d bytes (-want +got):\n%s", len(stat), diff)
	}
}

func FuzzUsage(f *testing.F) {
	f.Add([]byte("33554432\n"), []byte("oom 1\noom_kill 1\n"), []byte("some avg10=0.00 total=7\n"))
	f.Add([]byte("max\n"), []byte("oom_kill 99999999999999999999\n"), []byte("full total=-1\n"))
	f.Add([]byte(""), []byte("oom_kill"), []byte("some total=1 total=2"))
	f.Fuzz(func(t *testing.T, single, stat, pressure []byte) {
		r := UsageFS(fstest.MapFS{
			"memory.peak":      {Data: single},
			"memory.swap.peak": {Data: single},
			"pids.peak":        {Data: single},
			"memory.events":    {Data: stat},
			"cpu.stat":         {Data: stat},
			"memory.pressure":  {Data: pressure},
		})
		if r == nil {
			return
		}
		seen := 0
		for _, n := range []*int64{r.MemPeak, r.SwapPeak, r.OOMKills, r.MemSomeUsec, r.MemFullUsec, r.CPUUsec, r.ThrottledUsec, r.Throttled, r.PidsPeak} {
			if n == nil {
				continue
			}
			seen++
			if *n < 0 || *n > 1<<53-1 {
				t.Errorf("UsageFS read %d, want 0..2^53-1", *n)
			}
		}
		if seen == 0 {
			t.Error("UsageFS = a block without a number, want nil")
		}
	})
}

func BenchmarkUsage(b *testing.B) {
	dir, err := filepath.Abs("testdata/hosts/v2/sys/fs/cgroup/jobs/run-1")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if Usage(dir) == nil {
			b.Fatal("Usage = nil")
		}
	}
}

// The supervisor reads the block at the edge of a memory limit.
func TestUsageAllocates(t *testing.T) {
	dir := "testdata/hosts/v2/sys/fs/cgroup/jobs/run-1"
	if n := testing.AllocsPerRun(100, func() { Usage(dir) }); n > 10 {
		t.Errorf("Usage allocates %v times, want at most 10", n)
	}
}
