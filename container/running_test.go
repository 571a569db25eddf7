package container

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

func textLogger(w *logBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

var (
	listed    = []answer{{Stdout: fakeID + "\n"}}
	unlisted  = []answer{{}}
	silent    = []answer{{Stderr: "Cannot connect to the Docker daemon", Code: 1}}
	running   = answer{Stdout: containerJSON(isRunning)}
	unknownID = answer{Stdout: "[]\n", Stderr: "Error: No such container", Code: 1}
)

func exited(code int) answer { return answer{Stdout: containerJSON(hasExited(code))} }

// How a run ended is what the runtime says of the container, whatever the
// client's own code was.
func TestRunEnds(t *testing.T) {
	tests := []struct {
		name   string
		script script
		want   Result
		err    error
		logged string // an event
		short  func(*bounds)
	}{
		{
			name:   "client and runtime agree",
			script: script{"run": {{CID: fakeID, Code: 3}}, "container inspect": {exited(3)}},
			want:   Result{Code: 3},
		},
		{
			name:   "client says 125 after the run",
			script: script{"run": {{CID: fakeID, Code: 125, Stderr: "unexpected EOF"}}, "container inspect": {exited(0)}},
			want:   Result{Code: 0}, logged: "client_code_differs",
		},
		{
			name:   "client says 0, container 125",
			script: script{"run": {{CID: fakeID}}, "container inspect": {exited(125)}},
			want:   Result{Code: 125}, logged: "client_code_differs",
		},
		{
			name: "client says 125 with the container running",
			script: script{"run": {{CID: fakeID, Code: 125}}, "ps": listed,
				"container inspect": {running, running, exited(143)}},
			want: Result{Code: -1, Detached: true},
		},
		{
			name: "lost by the client, and its stop does not take",
			script: script{"run": {{CID: fakeID, Code: 125}}, "ps": listed,
				"container inspect": {running}, "stop": {{Code: 1, Stderr: "tried to kill container, but did not receive an exit event"}}, "kill": {{Code: 1}}},
			want: Result{Code: -1, Detached: true, Orphan: true}, logged: "container_orphan", short: shortKill,
		},
		{
			name:   "daemon lost and silent",
			script: script{"run": {{CID: fakeID, Code: 125}}, "ps": silent, "container inspect": silent},
			want:   Result{Code: -1, Detached: true, Orphan: true}, logged: "container_unanswered", short: shortAsk,
		},
		{
			name: "daemon silent for a while",
			script: script{"run": {{CID: fakeID, Code: 125}}, "ps": silent,
				"container inspect": {silent[0], silent[0], exited(137)}},
			want: Result{Code: 137}, logged: "client_code_differs",
		},
		{
			name:   "garbage from inspect",
			script: script{"run": {{CID: fakeID}}, "ps": listed, "container inspect": {{Stdout: "\x00{]"}}},
			want:   Result{Code: -1, Detached: true, Orphan: true}, logged: "container_unanswered", short: shortAsk,
		},
		{
			name:   "inspect describes another container",
			script: script{"run": {{CID: fakeID}}, "ps": listed, "container inspect": {{Stdout: strings.ReplaceAll(exited(0).Stdout, fakeID, strings.Repeat("cd", 32))}}},
			want:   Result{Code: -1, Detached: true, Orphan: true}, logged: "container_unanswered", short: shortAsk,
		},
		{
			name:   "inspect lacks the code",
			script: script{"run": {{CID: fakeID}}, "ps": listed, "container inspect": {{Stdout: strings.ReplaceAll(exited(0).Stdout, `"ExitCode":0,`, "")}}},
			want:   Result{Code: -1, Detached: true, Orphan: true}, logged: "container_unanswered", short: shortAsk,
		},
		{
			name:   "ended with a code that is none",
			script: script{"run": {{CID: fakeID}}, "container inspect": {exited(-1)}},
			want:   Result{Code: -1, Detached: true}, logged: "container_code_unknown",
		},
		{
			name:   "id gone",
			script: script{"run": {{CID: fakeID}}, "ps": unlisted, "container inspect": {unknownID}},
			want:   Result{Code: -1, Detached: true}, logged: "container_vanished",
		},
		{
			name:   "never started",
			script: script{"run": {{CID: fakeID, Code: 127}}, "container inspect": {{Stdout: containerJSON(isCreated)}}, "image inspect": {{Stdout: `{"Id":"x"}`}}},
			want:   Result{Code: -1, NeverStarted: true},
		},
		{
			name: "refused by the engine with the code of a command that can't be executed",
			script: script{"run": {{CID: fakeID, Code: 126, Stderr: "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied"}},
				"container inspect": {{Stdout: containerJSON(isCreated)}}, "image inspect": {{Stdout: `{"Id":"x"}`}}},
			want: Result{Code: -1, NeverStarted: true},
		},
		{
			name:   "never created",
			script: script{"run": {{Code: 125, Stderr: "invalid reference"}}, "ps": unlisted, "image inspect": {{Stdout: `{"Id":"x"}`}}},
			want:   Result{Code: -1, NeverStarted: true},
		},
		{
			name:   "image missing",
			script: script{"run": {{Code: 125}}, "ps": unlisted, "image inspect": {{Code: 1, Stderr: "No such image"}}},
			err:    ErrImageMissing,
		},
		{
			name:   "daemon down from the start",
			script: script{"info": silent},
			err:    ErrUnavailable,
		},
		{
			name:   "daemon down at the start of the client",
			script: script{"run": {{Code: 125, Stderr: "Cannot connect to the Docker daemon"}}, "ps": silent},
			err:    ErrUnavailable,
		},
		{
			name:   "cidfile stays empty, found by its label",
			script: script{"run": {{Stdout: "hi\n", Code: 4}}, "ps": listed, "container inspect": {exited(4)}},
			want:   Result{Code: 4},
		},
		{
			name:   "cidfile holds garbage, found by its label",
			script: script{"run": {{CID: "half an i", Stdout: "hi\n", Code: 4}}, "ps": listed, "container inspect": {exited(4)}},
			want:   Result{Code: 4},
		},
		{
			name:   "it wrote, and nothing is known of it",
			script: script{"run": {{Stdout: "hi\n", Code: 125}}, "ps": unlisted},
			want:   Result{Code: -1, Detached: true}, logged: "container_vanished",
		},
		{
			name:   "it wrote, and is said to have never started",
			script: script{"run": {{CID: fakeID, Stdout: "hi\n"}}, "container inspect": {{Stdout: containerJSON(isCreated)}}},
			want:   Result{Code: -1, Detached: true},
		},
		{
			name:   "refusal of the CPU ceiling",
			script: script{"run": {{Code: 125, Stderr: "docker: Error response from daemon: range of CPUs is from 0.01 to 1.00, as there are only 1 CPUs available."}}, "ps": unlisted, "image inspect": {{Stdout: `{"Id":"x"}`}}},
			want:   Result{Code: -1, NeverStarted: true}, logged: "cpu_ceiling_stale",
		},
		{
			name:   "a child was killed for memory in a job that went on",
			script: script{"run": {{CID: fakeID}}, "container inspect": {{Stdout: strings.ReplaceAll(exited(0).Stdout, `"OOMKilled":false`, `"OOMKilled":true`)}}},
			want:   Result{Code: 0}, logged: "container_oom_flag",
		},
		{
			name:   "removal fails",
			script: script{"run": {{CID: fakeID}}, "ps": listed, "container inspect": {exited(0)}, "rm": {{Code: 1, Stderr: "device or resource busy"}}},
			want:   Result{Code: 0}, logged: "container_not_removed", short: shortGone,
		},
		{
			name:   "removal is in progress elsewhere",
			script: script{"run": {{CID: fakeID}}, "ps": {listed[0], unlisted[0]}, "container inspect": {exited(0)}, "rm": {{Code: 1, Stderr: "removal of container is already in progress"}}},
			want:   Result{Code: 0},
		},
		{
			name:   "a grandchild of the client holds the output",
			script: script{"run": {{CID: fakeID, Stdout: "hi\n", Grandchild: true}}, "container inspect": {exited(0)}},
			want:   Result{Code: 0}, short: shortPipe,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.short == nil {
				test.short = func(*bounds) {}
			}
			f := newFake(t, test.script, test.short)
			spec := smallSpec("image")
			spec.Name = "fake"
			var output logBuffer
			got, err := f.Run(t.Context(), spec, IO{Stdin: strings.NewReader("x"), Log: &output})
			f.noFiles(t)
			if test.err != nil {
				if !errors.Is(err, test.err) || got != (Result{}) {
					t.Errorf("Run = %+v, %v, want a zero Result and %v", got, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Run: %v", err)
			}
			test.want.Name, test.want.MemoryLimit = "fake", jobsize.Known(64<<20)
			got.Started, got.Ended = time.Time{}, time.Time{}
			if got != test.want {
				t.Errorf("Run = %+v, want %+v", got, test.want)
			}
			if test.logged != "" && !strings.Contains(f.log.String(), test.logged) {
				t.Errorf("the log lacks %s:\n%s", test.logged, f.log.String())
			}
			if test.logged == "" && f.log.String() != "" {
				t.Errorf("the log has\n%s", f.log.String())
			}
			if wrote := test.script["run"][0].Stdout; !strings.Contains(output.String(), wrote) {
				t.Errorf("the output is %q, want %q kept", output.String(), wrote)
			}
			inspected := test.script["container inspect"]
			known := len(inspected) > 0 && strings.Contains(inspected[len(inspected)-1].Stdout, fakeID)
			f.removed(t, known && !got.Orphan)
		})
	}
}

// removed checks whether the container was removed, by its id: a name may be
// another's by then, and Podman takes the file of the id away with the container.
func (f fake) removed(t *testing.T, want bool) {
	t.Helper()
	calls := f.calls(t, "rm")
	if (len(calls) > 0) != want {
		t.Errorf("rm was called %d times, want some: %v", len(calls), want)
	}
	for _, call := range calls {
		if call != "rm --force --volumes "+fakeID {
			t.Errorf("removed by %q, want the id", call)
		}
	}
}

// What may outlive a run must be found by a later sweep, so the instance's file
// stays.
func TestLeftoverKeepsInstance(t *testing.T) {
	for name, s := range map[string]script{
		"orphan":          {"run": {{CID: fakeID}}, "ps": listed, "container inspect": {running}},
		"unanswered":      {"run": {{CID: fakeID}}, "ps": silent, "container inspect": silent},
		"not removed":     {"run": {{CID: fakeID}}, "ps": listed, "container inspect": {exited(0)}, "rm": {{Code: 1}}},
		"perhaps created": {"run": {{Code: 125}}, "ps": silent},
	} {
		f := newFake(t, s, shortAsk, shortKill, shortGone)
		_, _ = f.Run(t.Context(), smallSpec("image"), IO{})
		path := filepath.Join(f.config.Instance.folder, f.config.Instance.ID())
		if err := f.config.Instance.Close(); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: the instance's file is gone: %v", name, err)
		}
		if _, err := os.Stat(f.config.Instance.files()); err == nil {
			t.Errorf("%s: the instance's private files are left", name)
		}
	}
}

func TestStaleCeilingDropsFacts(t *testing.T) {
	refusal := answer{Code: 125, Stderr: "Range of CPUs is from 0.01 to 1.00, as there are only 1 CPUs available"}
	f := newFake(t, script{"run": {refusal, {CID: fakeID}}, "container inspect": {exited(0)}, "image inspect": {{Stdout: `{"Id":"x"}`}}})
	spec := smallSpec("image")
	spec.CPUs = jobsize.Known(200)
	for range 3 {
		if _, err := f.Run(t.Context(), spec, IO{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.calls(t, "info")); n != 2 {
		t.Errorf("info was asked %d times in 3 runs, want 2: once, and once after the refusal", n)
	}
	if log := f.log.String(); !strings.Contains(log, "asked=2 ") || !strings.Contains(log, "available=1") {
		t.Errorf("the log lacks both counts:\n%s", log)
	}
}

// cancelled runs a fake whose context ends once its client is there.
func (f fake) cancelled(t *testing.T, cause error) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(f.folder, "started")); err == nil {
				cancel(cause)
			}
			pause(ctx, 5*time.Millisecond)
		}
	}()
	return f.Run(ctx, smallSpec("image"), IO{Key: exit.NewKey()})
}

func TestRunStops(t *testing.T) {
	waits := answer{CID: fakeID, Touch: "started", Await: "stopped"}
	tests := []struct {
		name   string
		script script
		want   Result // less name, limit, cause and auth
		kept   bool   // the instance's file stays
		short  []func(*bounds)
	}{
		{
			name:   "stop takes",
			script: script{"run": {waits}, "stop": {{Touch: "stopped"}}, "container inspect": {running, exited(143)}},
		},
		{
			name:   "stop takes, and client and runtime say 0",
			script: script{"run": {waits}, "stop": {{Touch: "stopped"}}, "container inspect": {running, exited(0)}},
		},
		{
			name:   "stop fails, kill takes",
			script: script{"run": {waits}, "stop": {{Code: 1}}, "kill": {{Touch: "stopped"}}, "ps": listed, "container inspect": {running, running, exited(137)}},
		},
		{
			name:   "stop takes and the client hangs",
			script: script{"run": {{CID: fakeID, Touch: "started", Hang: true}}, "container inspect": {running, exited(143)}},
			kept:   true, short: []func(*bounds){shortKill},
		},
		{
			name:   "nothing takes",
			script: script{"run": {{CID: fakeID, Touch: "started", Hang: true}}, "stop": {{Code: 1}}, "kill": {{Code: 1}}, "ps": listed, "container inspect": {running}},
			want:   Result{Orphan: true}, kept: true, short: []func(*bounds){shortKill},
		},
		{
			name:   "the daemon falls silent",
			script: script{"run": {{CID: fakeID, Touch: "started", Hang: true}}, "stop": silent, "kill": silent, "ps": silent, "container inspect": silent},
			want:   Result{Orphan: true, Detached: true}, kept: true, short: []func(*bounds){shortKill, shortAsk},
		},
		{
			name:   "stop hangs, and the daemon then says that it ended",
			script: script{"run": {waits}, "stop": {{Hang: true}}, "container inspect": {running, exited(137)}},
			kept:   true, short: []func(*bounds){shortKill},
		},
		{
			name: "stop during create",
			// The client goes on until the container is there.
			script: script{"run": {{Touch: "started", Await: "stopped"}},
				"ps": {unlisted[0], unlisted[0], {Stdout: fakeID + "\n", Touch: "stopped"}}, "container inspect": {running, exited(143)}},
		},
		{
			name:   "stop during create, created and never started",
			script: script{"run": {{Touch: "started", Await: "stopped"}}, "ps": {unlisted[0], {Stdout: fakeID + "\n", Touch: "stopped"}}, "container inspect": {{Stdout: containerJSON(isCreated)}}},
			want:   Result{NeverStarted: true},
		},
		{
			name:   "stop during a create that comes to nothing",
			script: script{"run": {{Touch: "started", Hang: true}}, "ps": unlisted},
			want:   Result{NeverStarted: true}, kept: true, short: []func(*bounds){shortKill},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, test.script, test.short...)
			got, err := f.cancelled(t, ErrTimeout)
			if err != nil {
				t.Fatalf("Run: %v", err)
			}
			f.noFiles(t)
			if got.Code != 137 || !got.Aborted || got.Cause != ErrTimeout ||
				got.Orphan != test.want.Orphan || got.Detached != test.want.Detached || got.NeverStarted != test.want.NeverStarted {
				t.Errorf("Run = %+v, want it aborted with 137, and %+v", got, test.want)
			}
			if kept := f.config.Instance.leftover.Load(); kept != test.kept {
				t.Errorf("the instance's file is kept: %v, want %v", kept, test.kept)
			}
			f.removed(t, !test.want.Orphan && !(got.NeverStarted && test.kept))
		})
	}
}

// The private network is there before the container and goes after it, also
// when the run fails.
func TestPrivateNetwork(t *testing.T) {
	for name, s := range map[string]script{
		"went through": {"run": {{CID: fakeID}}, "container inspect": {exited(0)}},
		"failed":       {"run": {{Code: 125}}, "ps": unlisted, "image inspect": {{Code: 1}}},
	} {
		f := newFake(t, s)
		spec := smallSpec("image")
		spec.Name, spec.Network = "fake", NetworkPrivate
		_, _ = f.Run(t.Context(), spec, IO{})
		create, remove := f.calls(t, "network create"), f.calls(t, "network rm")
		if len(create) != 1 || !strings.HasPrefix(create[0], "network create --internal --label=dispatch.instance=") || !strings.HasSuffix(create[0], " fake") {
			t.Errorf("%s: networks made: %q", name, create)
		}
		if len(remove) != 1 || remove[0] != "network rm fake" {
			t.Errorf("%s: networks removed: %q", name, remove)
		}
	}
	f := newFake(t, script{"network create": {{Code: 1, Stderr: "could not find an available address pool"}}})
	spec := smallSpec("image")
	spec.Network = NetworkPrivate
	if got, err := f.Run(t.Context(), spec, IO{}); err == nil || got != (Result{}) || !strings.Contains(err.Error(), "address pool") {
		t.Errorf("Run = %+v, %v, want an error and nothing else", got, err)
	}
	if calls := f.calls(t, "run"); len(calls) > 0 {
		t.Errorf("started %q without its network", calls)
	}
	f.noFiles(t)
}

func TestFactsDocker(t *testing.T) {
	tests := []struct {
		name string
		info string
		want Facts // zero: ErrUnavailable
	}{
		{"all there", fakeInfo, Facts{Version: "20.10.24", CPUs: jobsize.Known(2), Memory: jobsize.Known(8 << 30), Cgroup: "v2", Driver: "cgroupfs"}},
		{"no swap, no shares", `{"ServerVersion":"1","NCPU":4,"MemTotal":1,"CgroupVersion":"1","SwapLimit":false,"CPUShares":false,"MemoryLimit":true}`,
			Facts{Version: "1", CPUs: jobsize.Known(4), Memory: jobsize.Known(1), Cgroup: "v1", Unenforced: []string{"--memory-swap", "--cpu-shares"}}},
		{"controllers off at boot", `{"ServerVersion":"1","MemoryLimit":false,"SwapLimit":false,"CpuCfsQuota":false,"PidsLimit":false}`,
			Facts{Version: "1", Unenforced: []string{"--memory", "--memory-swap", "--cpus", "--pids-limit"}}},
		{"rootless without delegation", `{"ServerVersion":"1","CgroupDriver":"none","SecurityOptions":["name=rootless"]}`,
			Facts{Version: "1", Driver: "none", Rootless: true, Unenforced: []string{"--memory", "--memory-swap", "--cpu-shares", "--cpus", "--pids-limit"}}},
		{"nonsense numbers", `{"ServerVersion":"1","NCPU":-2,"MemTotal":"many","CgroupVersion":3,"SwapLimit":"no"}`, Facts{Version: "1"}},
		{"no server", `{"ServerVersion":"","NCPU":0,"ServerErrors":["Cannot connect"]}`, Facts{}},
		{"garbage", "\x7fELF", Facts{}},
		{"null", "null", Facts{}},
	}
	for _, test := range tests {
		f := newFake(t, script{"info": {{Stdout: test.info}}})
		got, err := f.Facts(t.Context())
		if test.want.Version == "" {
			if !errors.Is(err, ErrUnavailable) || got.Runtime != "" {
				t.Errorf("%s: Facts = %+v, %v, want ErrUnavailable", test.name, got, err)
			}
			continue
		}
		test.want.Runtime, test.want.Isolated = "docker", true
		if err != nil || !equalFacts(got, test.want) {
			t.Errorf("%s: Facts = %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
}

func equalFacts(a, b Facts) bool {
	same := strings.Join(a.Unenforced, " ") == strings.Join(b.Unenforced, " ")
	a.Unenforced, b.Unenforced = nil, nil
	return same && a.Runtime == b.Runtime && a.Version == b.Version && a.CPUs == b.CPUs && a.Memory == b.Memory &&
		a.Cgroup == b.Cgroup && a.Driver == b.Driver && a.Rootless == b.Rootless && a.Isolated == b.Isolated
}

// A bound that the daemon drops is said for each job, and stays on the command
// line.
func TestUnenforcedIsLogged(t *testing.T) {
	f := newFake(t, script{
		"info": {{Stdout: `{"ServerVersion":"1","SwapLimit":false}`}},
		"run":  {{CID: fakeID, Stderr: "WARNING: Your kernel does not support swap limit capabilities"}}, "container inspect": {exited(0)},
	})
	if got, err := f.Run(t.Context(), smallSpec("image"), IO{}); err != nil || got.Code != 0 {
		t.Fatalf("Run = %+v, %v", got, err)
	}
	if log := f.log.String(); !strings.Contains(log, "size_bound_unenforced") || !strings.Contains(log, "--memory-swap") || strings.Contains(log, "WARNING") {
		t.Errorf("the log is\n%s", log)
	}
	if call := f.calls(t, "run")[0]; !strings.Contains(call, " --memory-swap=64m ") {
		t.Errorf("the command line %s lacks the flag", call)
	}
}

func TestImage(t *testing.T) {
	id := "sha256:" + strings.Repeat("12", 32)
	f := newFake(t, script{"image inspect": {
		{Stdout: `{"Id":"` + id + `","Config":{"Labels":{"dispatch.capabilities":" exitAuth, steer,,"}}}`},
		{Stdout: `{"Id":7}`},
		{Code: 1, Stderr: "No such image"},
	}})
	for _, ref := range []string{"name:tag", id, id} {
		got, err := f.Image(t.Context(), ref)
		if err != nil || got.ID != id || !got.Can(ExitAuth) || !got.Can("steer") || got.Can("") || len(got.Capabilities) != 2 {
			t.Errorf("Image(%q) = %+v, %v", ref, got, err)
		}
	}
	if n := len(f.calls(t, "image inspect")); n != 1 {
		t.Errorf("the image was inspected %d times, want once for its id", n)
	}
	if got, err := f.Image(t.Context(), "other"); !errors.Is(err, ErrUnavailable) || got.ID != "" {
		t.Errorf("Image with a garbage answer = %+v, %v, want ErrUnavailable", got, err)
	}
	if got, err := f.Image(t.Context(), "other"); !errors.Is(err, ErrImageMissing) || got.ID != "" {
		t.Errorf("Image = %+v, %v, want ErrImageMissing", got, err)
	}
	if _, err := f.Image(t.Context(), "--help"); !errors.Is(err, ErrImageMissing) {
		t.Errorf("Image(--help) = %v, want ErrImageMissing", err)
	}
	down := newFake(t, script{"info": silent, "image inspect": silent})
	if _, err := down.Image(t.Context(), "other"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Image of a silent daemon = %v, want ErrUnavailable", err)
	}
}

// A container that is not ours is never stopped, and one whose state can't be
// had is never taken for gone.
func TestStopByState(t *testing.T) {
	foreign := strings.ReplaceAll(exited(0).Stdout, `"dispatch.instance":"i"`, `"other":"x"`)
	tests := []struct {
		name   string
		script script
		ok     bool
		rm     int
	}{
		{"gone", script{"container inspect": {unknownID}, "ps": unlisted}, true, 0},
		{"ended", script{"container inspect": {exited(0)}}, true, 1},
		{"foreign", script{"container inspect": {{Stdout: foreign}}}, false, 0},
		{"silent", script{"container inspect": silent, "ps": silent}, false, 0},
		{"listed, can't be inspected", script{"container inspect": {{Code: 1}}, "ps": listed}, false, 0},
		{"only the beginning of an id", script{"container inspect": {{Stdout: strings.ReplaceAll(exited(0).Stdout, "/fake", "/other")}}, "ps": unlisted}, true, 0},
	}
	for _, test := range tests {
		f := newFake(t, test.script)
		err := f.Stop(t.Context(), "fake")
		if (err == nil) != test.ok {
			t.Errorf("%s: Stop = %v, want success %v", test.name, err, test.ok)
		}
		if n := len(f.calls(t, "rm")); n != test.rm {
			t.Errorf("%s: rm was called %d times, want %d", test.name, n, test.rm)
		}
	}
	f := newFake(t, script{"container inspect": {unknownID}, "ps": unlisted})
	_ = f.Stop(t.Context(), "job.1")
	if call := f.calls(t, "ps"); len(call) != 1 || !strings.Contains(call[0], `--filter=name=^/?job\.1$`) {
		t.Errorf("asked by %q, want the exact name", call)
	}
}
