package cgroup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// small are the limits of a job that needs little.
var small = Limits{Size: jobsize.Size{Mem: 64, CPU: 100}, PIDs: 64}

// testParent returns a delegated parent that is this test's own.
func testParent(t testing.TB) *Parent {
	t.Helper()
	p, err := OpenParent(lab.CgroupParent(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// testLeaf makes a leaf, and ends what is left of it after the test.
func testLeaf(t testing.TB, p *Parent, name string, limits Limits) *Leaf {
	t.Helper()
	l, err := p.Create("test", name, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(l.Kill(ctx), l.Remove()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return l
}

// readings reads a leaf's files back as a probe would print them.
func readings(t *testing.T, l *Leaf) Readings {
	t.Helper()
	var out bytes.Buffer
	for _, s := range small.Settings() {
		b, err := os.ReadFile(filepath.Join(l.Dir(), s.File))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s:%s", s.File, b)
	}
	return ParseReadings(out.Bytes())
}

func TestLiveLimits(t *testing.T) {
	p := testParent(t)
	tests := []Limits{
		small,
		{Size: jobsize.Size{Mem: 64, CPU: 25}, CPUs: jobsize.Known(25)},
		{Size: jobsize.Size{Mem: 4096, CPU: 200}, CPUs: jobsize.Known(330), PIDs: 100},
		{Size: jobsize.Size{Mem: 65, CPU: 800}, CPUs: jobsize.Off()},
		{Size: jobsize.Size{Mem: 1048576, CPU: 25600}, PIDs: 100000},
	}
	for i, limits := range tests {
		l := testLeaf(t, p, fmt.Sprintf("limits-%d", i), limits)
		got := readings(t, l)
		for _, s := range limits.Settings() {
			if got[s.File] != s.Text {
				t.Errorf("%+v: %s reads %q, want %q", limits, s.File, got[s.File], s.Text)
			}
		}
		if w, ok := got.Weight(); !ok || !slices.Contains(jobsize.Weights(limits.shares()), w) {
			t.Errorf("%+v: weight %d is not in %v", limits, w, jobsize.Weights(limits.shares()))
		}
		for _, f := range got.Judge(limits)[3:] {
			if f.Verdict != OK {
				t.Errorf("%+v: read back %+v, want ok", limits, f)
			}
		}
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
		if err := l.Remove(); err != nil {
			t.Errorf("the second Remove: %v", err)
		}
		if _, err := os.Stat(l.Dir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Remove: %v, want that it is gone", err)
		}
	}
}

// A process is inside its leaf from its first instruction, and finds itself
// there, through its namespaces or without.
func TestLiveSelf(t *testing.T) {
	p := testParent(t)
	l := testLeaf(t, p, "self", small)
	path := strings.TrimPrefix(l.Dir(), "/sys/fs/cgroup")
	tests := []struct {
		job   string
		flags uintptr
		want  Own
	}{
		{"self", 0, Own{Version: V2, Path: path, Dir: l.Dir()}},
		// The mount is of the host's namespace: it shows a root that climbs.
		{"self", unix.CLONE_NEWCGROUP, Own{Version: V2, Path: "/", Reason: ReasonNotVisible}},
		{"remount", unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS, Own{Version: V2, Path: "/", Dir: "/sys/fs/cgroup"}},
	}
	for _, tt := range tests {
		cmd := command(t.Context(), l, tt.job)
		cmd.SysProcAttr.Unshareflags = tt.flags
		out, err := cmd.Output()
		var got struct {
			Self  Own
			Usage *struct{ CPUUsec *int64 }
		}
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil {
			t.Errorf("the job %s with flags %#x: %v", tt.job, tt.flags, err)
			continue
		}
		if got.Self != tt.want {
			t.Errorf("Self in the job %s with flags %#x = %+v, want %+v", tt.job, tt.flags, got.Self, tt.want)
		}
		if readable := got.Usage != nil && got.Usage.CPUUsec != nil; readable != (tt.want.Dir != "") {
			t.Errorf("the job %s with flags %#x read its usage: %v, with %+v", tt.job, tt.flags, readable, tt.want)
		}
	}
	job := start(t, l, "idle")
	claim := Claim{Expected: strings.TrimPrefix(filepath.Dir(path), "/"), PID: job.Process.Pid, Budget: jobsize.Off()}
	claim.Recorded = claim.Expected
	if got := Place(os.DirFS("/"), claim); got.Verdict != OK || got.Path != path {
		t.Errorf("Place of a job in its leaf = %+v, want ok at %s", got, path)
	}
	claim.PID = os.Getpid()
	if got := Place(os.DirFS("/"), claim); got.Verdict != Failed {
		t.Errorf("Place of a process outside = %+v, want fail", got)
	}
}

func TestLiveForkBomb(t *testing.T) {
	for name, kill := range map[string]func(*Leaf) error{
		"cgroup.kill": func(l *Leaf) error { return l.Kill(context.Background()) },
		"each":        func(l *Leaf) error { return l.emptied(context.Background(), l.killEach) },
	} {
		t.Run(name, func(t *testing.T) {
			l := testLeaf(t, testParent(t), "bomb", small)
			job := start(t, l, "bomb")
			job.begin(t, "")
			// The first process of the bomb ends once it meets the bound.
			var code *exitError
			if err := job.Wait(); !errors.As(err, &code) || code.ExitCode() != 7 {
				t.Fatalf("the bomb ended with %v, want exit status 7", err)
			}
			if refused, ok := keyed(l.dir.read("pids.events", make([]byte, fileSize)), "max"); !ok || refused == 0 {
				t.Errorf("pids.events max = %d, %v, want above 0", refused, ok)
			}
			if u := l.Usage(); u == nil || u.PidsPeak != nil && *u.PidsPeak > small.PIDs {
				t.Errorf("Usage after the bomb = %+v, want a peak of at most %d", u, small.PIDs)
			}
			if err := l.Remove(); !errors.Is(err, unix.EBUSY) {
				t.Errorf("Remove of a leaf with processes = %v, want EBUSY", err)
			}
			if err := kill(l); err != nil {
				t.Fatal(err)
			}
			if procs := l.dir.read("cgroup.procs", make([]byte, fileSize)); procs == nil || len(procs) > 0 {
				t.Errorf("processes after the kill: %q", procs)
			}
			if err := l.Remove(); err != nil {
				t.Error(err)
			}
			if err := l.Kill(t.Context()); err != nil {
				t.Errorf("Kill of a leaf that is gone: %v", err)
			}
		})
	}
}

func TestLiveMemoryKill(t *testing.T) {
	big := small
	big.Size.Mem = 512
	tests := []struct {
		name        string
		limits      Limits
		parent      string // memory.max
		cause       Cause
		ownOOM      bool
		above       jobsize.Limit
		reachesPeak bool
	}{
		{"its own limit", small, "max", OwnLimit, true, jobsize.Off(), true},
		{"its parent's limit", big, "67108864", OtherLimit, false, jobsize.Known(64 << 20), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testParent(t)
			if err := p.dir.write("memory.max", tt.parent); err != nil {
				t.Fatal(err)
			}
			if err := p.dir.write("memory.swap.max", "0"); err != nil {
				t.Fatal(err)
			}
			l := testLeaf(t, p, "eat", tt.limits)
			w, err := l.WatchOOM()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			job := start(t, l, "eat")
			if e, ok := w.Events(); e != (Events{}) || !ok {
				t.Errorf("before the kill: Events = %+v, %v, want none", e, ok)
			}
			job.begin(t, "")
			var ended *exitError
			if err := job.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("200 MB ended with %v, want SIGKILL", err)
			}
			// The watch has the counts on its own, without the reads of Events.
			for deadline := time.Now().Add(time.Minute); w.lastKills() == 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			usage := l.Usage()
			own, above := l.MemoryLimits()
			if err := l.Remove(); err != nil {
				t.Fatal(err)
			}
			e, ok := w.Events()
			if !ok || e.OOMKill != 1 || (e.OOM > 0) != tt.ownOOM || e.Cause() != tt.cause {
				t.Errorf("after the leaf is gone: Events = %+v, %v (cause %q), want one kill by %q", e, ok, e.Cause(), tt.cause)
			}
			if err := errors.Join(w.Close(), w.Close()); err != nil {
				t.Errorf("Close: %v", err)
			}
			if after, ok := w.Events(); after != e || !ok {
				t.Errorf("after Close: Events = %+v, %v, want %+v", after, ok, e)
			}
			limit := tt.limits.Size.Mem.Bytes()
			if own != jobsize.Known(limit) || above != tt.above {
				t.Errorf("MemoryLimits = %v, %v, want %d, %v", own, above, limit, tt.above)
			}
			if usage == nil || usage.OOMKills == nil || *usage.OOMKills != 1 {
				t.Fatalf("Usage = %+v, want one kill", usage)
			}
			// memory.peak came with Linux 5.19.
			if usage.MemPeak != nil && (*usage.MemPeak >= limit/10*9) != tt.reachesPeak {
				t.Errorf("peak %d of a limit of %d, want it reached: %v", *usage.MemPeak, limit, tt.reachesPeak)
			}
		})
	}
}

func (w *OOMWatch) lastKills() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.OOMKill
}

// Two jobs that both want all of one processor get it by their weights.
func TestLiveWeights(t *testing.T) {
	p := testParent(t)
	var leaves [2]*Leaf
	for i, cpu := range []jobsize.Centi{100, 300} {
		limits := small
		limits.Size.CPU = cpu
		leaves[i] = testLeaf(t, p, fmt.Sprintf("busy-%d", i), limits)
	}
	weight := func(l *Leaf) float64 {
		n, _ := readings(t, l).Weight()
		return float64(n)
	}
	used := func() (n [2]int64) {
		for i, l := range leaves {
			u := l.Usage()
			if u == nil || u.CPUUsec == nil {
				t.Fatalf("Usage of a busy job = %+v", u)
			}
			n[i] = *u.CPUUsec
		}
		return n
	}
	for _, l := range leaves {
		start(t, l, "busy")
	}
	// The first second is the scheduler's to find the weights in, then 6 s of
	// CPU time are shared.
	await := func(usec int64) [2]int64 {
		deadline := time.Now().Add(2 * time.Minute)
		for n := used(); ; n = used() {
			if n[0]+n[1] >= usec {
				return n
			}
			if time.Now().After(deadline) {
				t.Fatalf("two busy jobs used %v us in two minutes, want %d", n, usec)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	before := await(1_000_000)
	want := weight(leaves[1]) / weight(leaves[0])
	// A VM whose host is busy stands still in between, which distorts a window.
	for range 5 {
		after := await(before[0] + before[1] + 6_000_000)
		got := float64(after[1]-before[1]) / float64(after[0]-before[0])
		t.Logf("jobs of 1 and 3 CPUs shared the processor 1 : %.3f, weights %.3f", got, want)
		if got >= want*0.9 && got <= want*1.1 {
			return
		}
		before = after
	}
	t.Errorf("jobs of 1 and 3 CPUs never shared the processor 1 : %.3f within 10 %%", want)
}

// A worker that was killed leaves its job running; whoever takes its instance
// over ends it, and nobody else's.
func TestLiveSweep(t *testing.T) {
	p := testParent(t)
	for _, instance := range []string{"a-1", "a-10"} {
		owner := launch(t, command(t.Context(), nil, "owner"))
		owner.begin(t, p.path+"\n"+instance)
		if got := owner.line(t); got != "ready" {
			t.Fatalf("the owner says %q, want its job to be ready", got)
		}
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait()
	}
	// A job may make cgroups below its own, and live there.
	inner := filepath.Join(p.path, "dispatch-a-1.run", "inner", "most")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	mover := start(t, nil, "idle")
	if err := os.WriteFile(inner+"/cgroup.procs", fmt.Append(nil, mover.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}

	if names, err := p.Leaves("a-1"); err != nil || !slices.Equal(names, []string{"dispatch-a-1.run"}) {
		t.Errorf("Leaves = %q, %v", names, err)
	}
	removed, err := p.Sweep(t.Context(), "a-1")
	if err != nil || !slices.Equal(removed, []string{"dispatch-a-1.run"}) {
		t.Errorf("Sweep = %q, %v, want the leaf of a-1", removed, err)
	}
	if removed, err := p.Sweep(t.Context(), "a-1"); err != nil || len(removed) != 0 {
		t.Errorf("the second Sweep = %q, %v, want nothing", removed, err)
	}
	other, err := os.ReadFile(filepath.Join(p.path, "dispatch-a-10.run", "cgroup.procs"))
	if err != nil || len(other) == 0 {
		t.Errorf("the job of a-10 has processes %q, %v, want that it lives", other, err)
	}
	if _, err := p.Sweep(t.Context(), "a-1/.."); !errors.Is(err, ErrName) {
		t.Errorf("Sweep of a bad instance = %v, want ErrName", err)
	}
	if removed, err := p.Sweep(t.Context(), "a-10"); err != nil || len(removed) != 1 {
		t.Errorf("Sweep of a-10 = %q, %v, want its leaf", removed, err)
	}
}

// A kill that cannot end in time says so, and the leaf can be killed again.
func TestLiveKillEndsWithItsContext(t *testing.T) {
	l := testLeaf(t, testParent(t), "stopped", small)
	start(t, l, "idle")
	why := errors.New("the test's cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := l.emptied(ctx, func() error { return nil }); !errors.Is(err, why) {
		t.Errorf("a kill that does nothing = %v, want the context's cause", err)
	}
	if err := l.Kill(t.Context()); err != nil {
		t.Error(err)
	}
}

// A delegated cgroup has its controllers and its children have none, as systemd
// leaves a unit.
func TestLiveEnableControllers(t *testing.T) {
	dir := childParent(t, testParent(t), "", 0)
	if _, err := OpenParent(dir); !errors.Is(err, ErrNotDelegated) {
		t.Fatalf("OpenParent = %v, want ErrNotDelegated", err)
	}
	for range 2 {
		if err := EnableControllers(dir); err != nil {
			t.Fatalf("EnableControllers = %v, want no error", err)
		}
	}
	p, err := OpenParent(dir)
	if err != nil {
		t.Fatalf("OpenParent = %v, want a parent", err)
	}
	defer p.Close()
	testLeaf(t, p, "run", small)

	busy := childParent(t, testParent(t), "", start(t, nil, "idle").Process.Pid)
	if err := EnableControllers(busy); !errors.Is(err, syscall.EBUSY) || strings.Contains(err.Error(), "/sys/fs") {
		t.Errorf("EnableControllers of a cgroup with a process = %v, want EBUSY and no path", err)
	}
	if err := EnableControllers(dir + "/gone"); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "/sys/fs") {
		t.Errorf("EnableControllers of no cgroup = %v, want fs.ErrNotExist and no path", err)
	}
}
