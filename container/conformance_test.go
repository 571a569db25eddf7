package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
)

// A subject is a runtime that has to do what every runtime does.
type subject struct {
	runtime  runtime
	instance string // that owns what it runs
	// spec returns a job whose command runs under a supervisor that signs.
	spec func(command ...string) Spec
	// ownFlags is true where the Spec's own supervisor flags have no effect:
	// the image has a supervisor.
	ownFlags bool
	// images is true for a runtime that runs images.
	images bool
}

// shell returns a job that is a shell script.
func (s subject) shell(script string) Spec { return s.spec("sh", "-c", script) }

func TestConformanceDocker(t *testing.T) {
	t.Run("image's supervisor", func(t *testing.T) {
		image := lab.SupervisedImage(t, "docker")
		d := newDocker(t, shortGrace)
		conform(t, subject{
			runtime:  d,
			instance: d.config.Instance.ID(),
			spec:     func(command ...string) Spec { return smallSpec(image, command...) },
			ownFlags: true,
			images:   true,
		})
	})
	t.Run("mounted supervisor", func(t *testing.T) {
		image := lab.Image(t, "docker")
		d := newDocker(t, shortGrace)
		conform(t, d.mounted(t, d, image))
	})
}

func TestConformancePodman(t *testing.T) {
	p, image := newPodman(t)
	conform(t, p.mounted(t, p, image))
}

// newPodman returns a Podman runtime and an image, and checks in the end that
// nothing is left.
func newPodman(t testing.TB) (*Podman, string) {
	t.Helper()
	image := lab.Podman(t)
	p, err := NewPodman(PodmanConfig{Instance: newTestInstance(t, t.TempDir()), Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := p.Leftovers(context.Background(), p.config.Instance.ID()); err != nil || len(left) > 0 {
			t.Errorf("left behind: %+v, %v", left, err)
		}
	})
	return p, image
}

// mounted returns jobs of a client's runtime under a supervisor that is mounted
// into an image which knows nothing of it.
func (c *client) mounted(t testing.TB, r runtime, image string) subject {
	t.Helper()
	supervisor := ownSupervisor(t)
	return subject{runtime: r, instance: c.config.Instance.ID(), images: true, spec: func(command ...string) Spec {
		spec := smallSpec(image, command...)
		spec.Supervisor = supervisor
		return spec
	}}
}

func TestConformanceProcess(t *testing.T) {
	p, err := NewProcess(ProcessConfig{Supervisor: ownSupervisor(t), Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	conform(t, subject{
		runtime: p,
		spec:    func(command ...string) Spec { return smallSpec("", command...) },
	})
}

// ownSupervisor returns a supervisor to mount: this test binary where it is
// static (CGO_ENABLED=0), else one that is built.
func ownSupervisor(t testing.TB) []string {
	t.Helper()
	if own := self(t); checkStatic(own) == nil {
		return []string{own, "supervise"}
	}
	return []string{lab.Supervisor(t)}
}

func shortGrace(c *DockerConfig) { c.Grace = time.Second }

// conform runs the table of behaviours against one runtime.
func conform(t *testing.T, s subject) {
	t.Setenv("DISPATCH_TEST_HOST_SECRET", "of-the-host")
	t.Run("all", func(t *testing.T) {
		for _, b := range behaviours {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				b.test(t, s)
			})
		}
		if !s.ownFlags { // such an image's supervisor always wants a key
			t.Run("no key, unsigned line", func(t *testing.T) {
				t.Parallel()
				testUnsigned(t, s)
			})
		}
	})
	left, err := s.runtime.List(t.Context(), Labels{Instance: s.instance})
	if err != nil || len(left) > 0 {
		t.Errorf("List after all = %v, %v, want nothing left", left, err)
	}
}

var behaviours = []struct {
	name string
	test func(*testing.T, subject)
}{
	{"exit codes are the job's own", testExitCodes},
	{"missing command", testMissingCommand},
	{"missing image", testMissingImage},
	{"name taken", testNameTaken},
	{"key, input and the end of input", testInput},
	{"input that is never read", testUnreadInput},
	{"long output with the exit line last", testLongOutput},
	{"one line of 1 MiB", testLongLine},
	{"forged exit lines", testForgedLines},
	{"stop of a deaf command", testDeafCommand},
	{"timeout", testTimeout},
	{"cancel before the start", testCancelBefore},
	{"grandchild holds the output", testGrandchild},
	{"environment is the spec's", testEnvironment},
	{"refused specs start nothing", testRefused},
	{"unknown containers", testUnknown},
	{"listed and inspected while it runs", testSeenRunning},
	{"stopped by name", testStopByName},
	{"full log", testFullLog},
}

// run runs a job to its end, with a key.
func (s subject) run(t *testing.T, spec Spec) (Result, string) {
	t.Helper()
	var log logBuffer
	result, err := s.runtime.Run(t.Context(), spec, IO{Key: exit.NewKey(), Log: &log})
	if err != nil {
		t.Fatalf("Run: %v\n%s", err, log.String())
	}
	return result, log.String()
}

// wantCode checks a run that went through, signed.
func wantCode(t *testing.T, r Result, code int) {
	t.Helper()
	if r.Code != code || r.Aborted || r.NeverStarted || r.Detached || r.Orphan {
		t.Errorf("Run = %+v, want code %d and nothing else", r, code)
	}
	if r.Auth != exit.Verified || r.Line == nil || r.Line.Code == nil || *r.Line.Code != int64(code) {
		t.Errorf("Run gave line %+v, %q, want a verified line with code %d", r.Line, r.Auth, code)
	}
	if r.Started.IsZero() || r.Ended.Before(r.Started) || r.Name == "" {
		t.Errorf("Run = %q from %v to %v, want a name and instants in order", r.Name, r.Started, r.Ended)
	}
}

func testExitCodes(t *testing.T, s subject) {
	for _, code := range []int{0, 1, 2, 3, 125, 126, 127, 255} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			result, _ := s.run(t, s.shell(fmt.Sprintf("exit %d", code)))
			wantCode(t, result, code)
		})
	}
}

func testMissingCommand(t *testing.T, s subject) {
	result, _ := s.run(t, s.spec("no-such-command"))
	if result.Code != 127 || result.NeverStarted {
		t.Errorf("Run = %+v, want code 127 of a supervisor that ran", result)
	}
}

func testMissingImage(t *testing.T, s subject) {
	spec := s.shell("true")
	spec.Image = "dispatch-lab-absent:none"
	if _, err := s.runtime.Image(t.Context(), spec.Image); !errors.Is(err, ErrImageMissing) {
		t.Errorf("Image(%q) = %v, want ErrImageMissing", spec.Image, err)
	}
	if !s.images {
		return
	}
	result, err := s.runtime.Run(t.Context(), spec, IO{})
	if !errors.Is(err, ErrImageMissing) || result != (Result{}) {
		t.Errorf("Run = %+v, %v, want a zero Result and ErrImageMissing", result, err)
	}
}

func testNameTaken(t *testing.T, s subject) {
	first := s.shell("echo ready; sleep 1000")
	first.Name = NewName("conform-", "taken", 1)
	s.during(t, first, func() {
		second := s.shell("echo second ran")
		second.Name = first.Name
		var log logBuffer
		result, err := s.runtime.Run(t.Context(), second, IO{Key: exit.NewKey(), Log: &log})
		if err == nil && !result.NeverStarted || strings.Contains(log.String(), "second ran\n") {
			t.Errorf("Run = %+v, %v, want a run that never started", result, err)
		}
		state, err := s.runtime.Inspect(t.Context(), first.Name)
		if err != nil || !state.Running {
			t.Errorf("Inspect of the first = %+v, %v, want it to run on", state, err)
		}
	})
}

// during calls f while a job runs, which has said that it is ready, and then
// cancels it.
func (s subject) during(t *testing.T, spec Spec, f func()) Result {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	log := &logBuffer{awaited: "ready\n", found: make(chan struct{})}
	type answer struct {
		Result
		error
	}
	ended := make(chan answer, 1)
	go func() {
		result, err := s.runtime.Run(ctx, spec, IO{Key: exit.NewKey(), Log: log})
		ended <- answer{result, err}
	}()
	select {
	case <-log.found:
		f()
	case a := <-ended:
		t.Fatalf("Run = %+v, %v before it was ready:\n%s", a.Result, a.error, log.String())
	}
	cancel(ErrCancelled)
	a := <-ended
	if a.error != nil {
		t.Fatalf("Run: %v", a.error)
	}
	return a.Result
}

func testInput(t *testing.T, s subject) {
	spec := s.spec("cat")
	spec.PlainCommand = true
	var log logBuffer
	input := strings.Repeat("input\n", 1000)
	result, err := s.runtime.Run(t.Context(), spec, IO{Key: exit.NewKey(), Stdin: strings.NewReader(input), Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 0)
	if !strings.HasPrefix(log.String(), input) {
		t.Errorf("the command read %.40q, want its input", log.String())
	}
}

func testUnreadInput(t *testing.T, s subject) {
	spec := s.spec("true")
	spec.PlainCommand = true
	input := bytes.NewReader(make([]byte, 8<<20))
	result, err := s.runtime.Run(t.Context(), spec, IO{Key: exit.NewKey(), Stdin: input})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 0)
}

func testLongOutput(t *testing.T, s subject) {
	const size = 200_000_000
	count := &countingWriter{}
	spec := s.shell(fmt.Sprintf("head -c %d /dev/zero", size))
	result, err := s.runtime.Run(t.Context(), spec, IO{Key: exit.NewKey(), Log: count})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 0)
	if count.n < size || !result.TailCut {
		t.Errorf("the log got %d bytes, tail cut %v, want %d and true", count.n, result.TailCut, size)
	}
}

func testLongLine(t *testing.T, s subject) {
	result, log := s.run(t, s.shell("head -c 1048576 /dev/zero | tr '\\000' x"))
	wantCode(t, result, 0)
	if n := strings.Count(log, "x"); n < 1048576 {
		t.Errorf("the log has %d of 1048576 bytes", n)
	}
}

func testForgedLines(t *testing.T, s subject) {
	forged := `{"event":"exit","code":0,"turns":7,"auth":"` + strings.Repeat("0", 64) + `"}`
	result, _ := s.run(t, s.shell("echo '"+forged+"'; exit 1"))
	wantCode(t, result, 1)
	if result.Line.Turns != nil {
		t.Errorf("Run gave a forged line: %+v", result.Line)
	}
}

func testUnsigned(t *testing.T, s subject) {
	result, err := s.runtime.Run(t.Context(), s.shell("exit 1"), IO{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 1 || result.Auth != exit.Unchecked || result.Line == nil || result.Line.Verified {
		t.Errorf("Run = %+v, want code 1 and an unchecked line", result)
	}
}

// deaf is a script that a SIGTERM does not end.
const deaf = `trap "" TERM; echo ready; while :; do sleep 1; done`

func testDeafCommand(t *testing.T, s subject) {
	result := s.during(t, s.shell(deaf), func() {})
	wantAborted(t, result, ErrCancelled)
}

func wantAborted(t *testing.T, r Result, cause error) {
	t.Helper()
	if r.Code != 137 || !r.Aborted || !errors.Is(r.Cause, cause) || r.NeverStarted || r.Detached || r.Orphan {
		t.Errorf("Run = %+v, want it aborted with 137 and %v", r, cause)
	}
}

func testTimeout(t *testing.T, s subject) {
	log := &logBuffer{awaited: "ready\n", found: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-log.found:
			cancel(ErrTimeout)
		case <-t.Context().Done():
		}
	}()
	result, err := s.runtime.Run(ctx, s.shell("echo ready; sleep 1000"), IO{Key: exit.NewKey(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	wantAborted(t, result, ErrTimeout)
}

func testCancelBefore(t *testing.T, s subject) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrShutdown)
	var log logBuffer
	result, err := s.runtime.Run(ctx, s.shell("echo ran"), IO{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 137 || !result.Aborted || !result.NeverStarted || result.Cause != ErrShutdown || log.String() != "" {
		t.Errorf("Run = %+v with output %q, want nothing started, aborted with 137", result, log.String())
	}
}

func testGrandchild(t *testing.T, s subject) {
	result, _ := s.run(t, s.shell("sleep 1000 & exit 0"))
	wantCode(t, result, 0)
}

func testEnvironment(t *testing.T, s subject) {
	spec := s.spec("env")
	spec.Env = map[string]string{"GREETING": `a "b" $HOME # c`, "EMPTY": ""}
	result, log := s.run(t, spec)
	wantCode(t, result, 0)
	if !strings.Contains(log, "\nGREETING=a \"b\" $HOME # c\n") && !strings.HasPrefix(log, "GREETING=a \"b\" $HOME # c\n") {
		t.Errorf("the job's environment lacks GREETING as it was given:\n%s", log)
	}
	if strings.Contains(log, "of-the-host") {
		t.Errorf("the job's environment has a variable of the host:\n%s", log)
	}
}

func testRefused(t *testing.T, s subject) {
	for name, change := range map[string]func(*Spec){
		"reserved variable": func(s *Spec) { s.Env = map[string]string{"PI_DISPATCH_RUNNER_PID": "1"} },
		"line break":        func(s *Spec) { s.Env = map[string]string{"A": "b\nc"} },
		"relative mount":    func(s *Spec) { s.Mounts = []Mount{{Source: "here", Target: "here"}} },
		"comma in a mount":  func(s *Spec) { s.Mounts = []Mount{{Source: "/a,b", Target: "/a,b"}} },
		"longest argument":  func(s *Spec) { s.Args = append(s.Args, strings.Repeat("a", 4<<20)) },
		"no name of a user": func(s *Spec) { s.User = "root" },
	} {
		spec := s.shell("echo ran")
		change(&spec)
		var log logBuffer
		result, err := s.runtime.Run(t.Context(), spec, IO{Log: &log})
		if !errors.Is(err, ErrSpec) || result != (Result{}) || log.String() != "" {
			t.Errorf("%s: Run = %+v, %v with output %q, want ErrSpec and nothing else", name, result, err, log.String())
		}
	}
}

func testUnknown(t *testing.T, s subject) {
	name := NewName("conform-", "absent", 1)
	if state, err := s.runtime.Inspect(t.Context(), name); !errors.Is(err, ErrUnknown) || state != (State{}) {
		t.Errorf("Inspect(%q) = %+v, %v, want ErrUnknown", name, state, err)
	}
	if err := s.runtime.Stop(t.Context(), name); err != nil {
		t.Errorf("Stop(%q) = %v, want nil for what is gone", name, err)
	}
}

func testSeenRunning(t *testing.T, s subject) {
	spec := s.shell("echo ready; sleep 1000")
	spec.Name, spec.Job, spec.Host = NewName("conform-", "seen", 7), "seen", "host-"+nonce()
	spec.Attempt = 7
	s.during(t, spec, func() {
		state, err := s.runtime.Inspect(t.Context(), spec.Name)
		if err != nil || !state.Running || state.PID <= 0 || state.Started.IsZero() || state.Name != spec.Name {
			t.Errorf("Inspect = %+v, %v, want a running container", state, err)
		}
		if l := state.Labels; l.Job != "seen" || l.Attempt != "7" || l.Host != spec.Host {
			t.Errorf("Inspect gave labels %+v", l)
		}
		for filter, want := range map[Labels]int{
			{Job: "seen"}: 1, {Job: "see"}: 0, {Job: "seen", Attempt: "8"}: 0, {Host: spec.Host}: 1,
		} {
			if list, err := s.runtime.List(t.Context(), filter); err != nil || len(list) != want {
				t.Errorf("List(%+v) = %+v, %v, want %d", filter, list, err, want)
			}
		}
	})
	if _, err := s.runtime.Inspect(t.Context(), spec.Name); !errors.Is(err, ErrUnknown) {
		t.Errorf("Inspect after the end = %v, want ErrUnknown", err)
	}
}

func testStopByName(t *testing.T, s subject) {
	spec := s.shell("echo ready; sleep 1000")
	// A name that begins with the other's must not be stopped with it.
	spec.Name = NewName("conform-", "stop", 1)
	longer := spec
	longer.Name = spec.Name + "0"
	s.during(t, longer, func() {
		s.during(t, spec, func() {
			if err := s.runtime.Stop(t.Context(), spec.Name); err != nil {
				t.Errorf("Stop = %v", err)
			}
		})
		if state, err := s.runtime.Inspect(t.Context(), longer.Name); err != nil || !state.Running {
			t.Errorf("Inspect of %q = %+v, %v, want it to run on", longer.Name, state, err)
		}
	})
}

func testFullLog(t *testing.T, s subject) {
	result, err := s.runtime.Run(t.Context(), s.shell("head -c 1000000 /dev/zero"), IO{Key: exit.NewKey(), Log: fullDisk{}})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 0)
}
