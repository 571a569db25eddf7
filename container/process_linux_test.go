package container

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// newBoundProcess returns a process runtime with a cgroup parent of its own.
func newBoundProcess(t testing.TB) *Process {
	t.Helper()
	parent := lab.CgroupParent(t)
	return newProcess(t, func(c *ProcessConfig) { c.CgroupParent = parent })
}

func TestConformanceProcessInLeaf(t *testing.T) {
	p := newBoundProcess(t)
	conform(t, subject{
		runtime: p,
		spec:    func(command ...string) Spec { return smallSpec("", command...) },
	})
	wantNoLeaf(t, p)
}

func wantNoLeaf(t testing.TB, p *Process) {
	t.Helper()
	left, err := filepath.Glob(p.config.CgroupParent + "/*/cgroup.procs")
	if err != nil || len(left) > 0 {
		t.Errorf("leaves %q are left, %v", left, err)
	}
}

func TestProcessLimits(t *testing.T) {
	p := newBoundProcess(t)
	facts, err := p.Facts(t.Context())
	if err != nil || len(facts.Unenforced) > 0 || facts.Isolated || facts.Cgroup != "v2" {
		t.Errorf("Facts = %+v, %v, want every bound enforced and no isolation", facts, err)
	}
	spec := jobSpec(t, "limits")
	spec.Size = jobsize.Size{Mem: 96, CPU: 150}
	spec.CPUs = jobsize.Known(175)
	spec.PIDs = 77
	result, log := subject{runtime: p}.run(t, spec)
	wantCode(t, result, 0)
	if n, ok := result.MemoryLimit.Value(); !ok || n != 96<<20 {
		t.Errorf("MemoryLimit = %v, want 96 MiB", result.MemoryLimit)
	}
	weights := jobsize.Weights(spec.Size.Shares())
	want := "memory.max:100663296\nmemory.swap.max:0\nmemory.oom.group:0\ncpu.weight:" +
		strconv.FormatInt(weights[0], 10) + "\ncpu.max:175000 100000\npids.max:77\n"
	if !strings.HasPrefix(log, want) {
		t.Errorf("the leaf reads %q, want %q", log, want)
	}
	if r := result.Line.Resources; r == nil || r.MemPeak == nil || *r.MemPeak == 0 || r.CPUUsec == nil || r.PidsPeak == nil {
		t.Errorf("Resources = %+v, want the leaf's usage", r)
	}
	wantNoLeaf(t, p)
}

func TestFactsWithoutParent(t *testing.T) {
	facts, err := newProcess(t).Facts(t.Context())
	if err != nil || len(facts.Unenforced) != len(sizeFlags) || facts.Isolated {
		t.Errorf("Facts = %+v, %v, want no bound enforced and no isolation", facts, err)
	}
	if n, ok := facts.Memory.Value(); !ok || n < 64<<20 {
		t.Errorf("Facts gave %v bytes of memory", facts.Memory)
	}
}

// Of all the ways to end with a memory kill in sight, one alone is oom-killed
// with a peak that shows it.
func TestProcessMemoryKills(t *testing.T) {
	tests := []struct {
		name  string
		mem   jobsize.MiB // of the job
		above string      // memory.max of the parent
		job   string
		code  int
		// What the line says.
		oomKilled, kills, peakAtLimit bool
	}{
		{"at its own limit", 64, "max", "hog 200", 137, true, true, true},
		{"a child at its own limit", 64, "max", "parent-of-hog 200", 0, false, true, true},
		{"at a limit above, well below its own", 512, "67108864", "hog 200", 137, true, true, false},
		{"children that are each smaller than the supervisor", 64, "max", "crowd 60 3000000", 0, false, true, true},
		{"none", 64, "max", "hog 8", 0, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newBoundProcess(t)
			if err := os.WriteFile(p.config.CgroupParent+"/memory.max", []byte(test.above), 0); err != nil {
				t.Fatal(err)
			}
			var notes logBuffer
			p.config.Log = slog.New(slog.NewTextHandler(&notes, nil))
			spec := jobSpec(t, strings.Fields(test.job)...)
			spec.Size.Mem = test.mem
			result, log := subject{runtime: p}.run(t, spec)
			wantCode(t, result, test.code)
			wantMemoryKill(t, result, test.oomKilled, test.kills, test.peakAtLimit)
			if noted := strings.Contains(notes.String(), "process_memory_kills"); noted != test.kills {
				t.Errorf("memory kills noted: %v, want %v: %s", noted, test.kills, notes.String())
			}
			// Both limits, so that a reader sees whose it was.
			limits := fmt.Sprintf("own_limit=%d limit_above=%s\n", test.mem.Bytes(), strings.Replace(test.above, "max", "off", 1))
			if test.kills && !strings.Contains(notes.String(), limits) {
				t.Errorf("noted %q, want %q", notes.String(), limits)
			}
			if t.Failed() {
				t.Log(log)
			}
			wantNoLeaf(t, p)
		})
	}
}

// A SIGKILL from outside is no memory kill.
func TestProcessKilledFromOutside(t *testing.T) {
	p := newBoundProcess(t)
	log := newHereLog()
	go func() { syscall.Kill(<-log.pid, syscall.SIGKILL) }()
	result, err := p.Run(t.Context(), jobSpec(t, "here"), IO{Key: exit.NewKey(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 137)
	if r := result.Line.Resources; result.Line.OOMKilled || r == nil || r.OOMKills == nil || *r.OOMKills != 0 {
		t.Errorf("line = %+v with %+v, want no memory kill", result.Line, r)
	}
	wantNoLeaf(t, p)
}

func TestProcessStoppedInLeaf(t *testing.T) {
	p := newBoundProcess(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	log := newHereLog()
	go func() { <-log.pid; cancel(ErrCancelled) }()
	result, err := p.Run(ctx, jobSpec(t, "keep", "deaf"), IO{Key: exit.NewKey(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	wantAborted(t, result, ErrCancelled)
	if result.Line == nil || result.Line.OOMKilled {
		t.Errorf("line = %+v, want one without a memory kill", result.Line)
	}
	wantNoLeaf(t, p)
}

// bomb forks as fast as it can, and then goes on trying.
const bomb = `bomb() { bomb | bomb & }; bomb; while :; do bomb; done`

func TestProcessForkBomb(t *testing.T) {
	for _, shell := range []string{
		`bomb() { bomb | bomb & }; bomb; bomb; exit 7`,
		bomb,
	} {
		p := newBoundProcess(t)
		spec := smallSpec("", "sh", "-c", shell)
		spec.PIDs = 64
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		started := make(chan struct{})
		go func() {
			<-started
			waitForPids(p, 64)
			cancel(ErrTimeout)
		}()
		log := &logBuffer{awaited: "\n", found: started}
		spec.Args[2] = "echo started; " + shell
		result, err := p.Run(ctx, spec, IO{Key: exit.NewKey(), Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if result.Auth != exit.Verified || result.Line == nil || result.Orphan {
			t.Errorf("Run = %+v, want a verified line and nothing left", result)
		}
		if result.Line != nil && (result.Line.Resources == nil || *result.Line.Resources.PidsPeak < 32 || *result.Line.Resources.PidsPeak > 64) {
			t.Errorf("Resources = %+v, want a peak of tasks up to the bound of 64", result.Line.Resources)
		}
		wantNoLeaf(t, p)
	}
}

// waitForPids returns once a leaf of the runtime is full, or gone.
func waitForPids(p *Process, full int) {
	for range 200_000 {
		files, _ := filepath.Glob(p.config.CgroupParent + "/*/pids.events")
		if len(files) == 0 {
			return
		}
		text, _ := os.ReadFile(files[0])
		var reached int
		if _, err := fmt.Sscanf(string(text), "max %d", &reached); err == nil && reached > full {
			return
		}
	}
}

// What a killed worker left in its leaves is found by its next start, dead or
// alive, and nothing of a worker that lives.
func TestProcessSweep(t *testing.T) {
	other := newBoundProcess(t)
	folder := t.TempDir()
	parent := other.config.CgroupParent
	wantDead(t, killWorker(t, folder, parent, "keep", "deaf"))
	survivor := killWorker(t, folder, parent, "freeze")
	p := newProcess(t, func(c *ProcessConfig) { c.CgroupParent = parent; c.Instance = newTestInstance(t, folder) })

	log := newHereLog()
	spec := jobSpec(t, "here")
	spec.Name = "of-the-living"
	ended := make(chan Result, 1)
	go func() {
		result, _ := p.Run(context.Background(), spec, IO{Log: log})
		ended <- result
	}()
	<-log.pid

	dry, err := Sweep(t.Context(), SweepConfig{Folder: folder, Holders: []Holder{p}, DryRun: true})
	if err != nil || countKind(dry, kindCgroup) != 2 {
		t.Errorf("dry Sweep = %+v, %v, want two leaves", dry, err)
	}
	if err := syscall.Kill(survivor, 0); err != nil {
		t.Errorf("the dry Sweep ended process %d", survivor)
	}
	swept, err := Sweep(t.Context(), SweepConfig{Folder: folder, Holders: []Holder{p}})
	if err != nil || countKind(swept, kindCgroup) != 2 {
		t.Errorf("Sweep = %+v, %v, want two leaves", swept, err)
	}
	for _, l := range swept {
		if !l.Gone || l.Err != nil {
			t.Errorf("%+v is left", l)
		}
	}
	wantDead(t, survivor)
	if _, err := p.Inspect(t.Context(), "of-the-living"); err != nil {
		t.Errorf("the living worker's job: %v", err)
	}
	if err := p.Stop(t.Context(), "of-the-living"); err != nil {
		t.Error(err)
	}
	<-ended
	wantNoLeaf(t, p)
}

func countKind(all []Leftover, kind string) int {
	n := 0
	for _, l := range all {
		if l.Kind == kind {
			n++
		}
	}
	return n
}
