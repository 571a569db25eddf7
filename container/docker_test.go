package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// newDocker returns a Docker runtime of an instance of its own, and checks in
// the end that nothing of it is left.
func newDocker(t testing.TB, change ...func(*DockerConfig)) *Docker {
	t.Helper()
	config := DockerConfig{Daemon: lab.Docker(t), Instance: newTestInstance(t, t.TempDir())}
	for _, f := range change {
		f(&config)
	}
	d, err := NewDocker(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := d.Leftovers(context.Background(), config.Instance.ID())
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %+v, %v", left, err)
		}
	})
	return d
}

func newTestInstance(t testing.TB, folder string) *Instance {
	t.Helper()
	i, err := NewInstance(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return i
}

// smallSpec is a job of 64 MiB and half a CPU.
func smallSpec(image string, command ...string) Spec {
	return Spec{
		Image:   image,
		Args:    command,
		Job:     "job-1",
		Attempt: 1,
		Size:    jobsize.Size{Mem: 64, CPU: 50},
	}
}

// Without a supervisor the codes 125, 126 and 127 come from the job or from the
// engine; only what the runtime says of the container tells which.
func TestDockerBareCodes(t *testing.T) {
	d := newDocker(t)
	image := lab.Image(t, "docker")
	for _, code := range []int{0, 125, 126, 127} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			got, err := d.Run(t.Context(), smallSpec(image, "sh", "-c", fmt.Sprintf("exit %d", code)), IO{})
			if err != nil || got.Code != code || got.NeverStarted || got.Started.IsZero() {
				t.Errorf("Run = %+v, %v", got, err)
			}
		})
	}
	for _, command := range []string{"no-such-command", "/tmp"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			got, err := d.Run(t.Context(), smallSpec(image, command), IO{})
			if err != nil || got.Code != -1 || !got.NeverStarted {
				t.Errorf("Run = %+v, %v, want a run that never started", got, err)
			}
		})
	}
}

func TestDockerCPUCeiling(t *testing.T) {
	var log logBuffer
	d := newDocker(t, func(c *DockerConfig) { c.Log = textLogger(&log) })
	spec := smallSpec(lab.Image(t, "docker"), "true")
	spec.CPUs = jobsize.Known(409600)
	got, err := d.Run(t.Context(), spec, IO{})
	if err != nil || !got.NeverStarted || !strings.Contains(log.String(), "cpu_ceiling_stale") || d.facts != nil {
		t.Errorf("Run with 4096 CPUs = %+v, %v, want it refused and the facts dropped; log:\n%s", got, err, log.String())
	}
}

func TestDockerMemoryKill(t *testing.T) {
	var log logBuffer
	d := newDocker(t, func(c *DockerConfig) { c.Log = textLogger(&log) })
	image := lab.Image(t, "docker")
	grow := "tail /dev/zero"
	got, err := d.Run(t.Context(), smallSpec(image, "sh", "-c", "exec "+grow), IO{})
	if err != nil || got.Code != 137 || got.Aborted {
		t.Errorf("Run of what grows = %+v, %v, want code 137", got, err)
	}
	if limit, ok := got.MemoryLimit.Value(); !ok || limit != 64<<20 {
		t.Errorf("Run gave a limit of %v, want 64 MiB", got.MemoryLimit)
	}
	// A child's kill is a fact of its own: the job went on.
	got, err = d.Run(t.Context(), smallSpec(image, "sh", "-c", grow+"; exit 0"), IO{})
	if err != nil || got.Code != 0 {
		t.Errorf("Run of what outlives its child = %+v, %v, want code 0", got, err)
	}
}

func TestDockerPrivateNetwork(t *testing.T) {
	d := newDocker(t)
	spec := smallSpec(lab.Image(t, "docker"), "ip", "-o", "-4", "addr")
	spec.Network = NetworkPrivate
	var log logBuffer
	got, err := d.Run(t.Context(), spec, IO{Log: &log})
	if err != nil || got.Code != 0 || !strings.Contains(log.String(), "eth0") {
		t.Errorf("Run = %+v, %v, want an interface of its own:\n%s", got, err, log.String())
	}
}

// What a Spec says holds inside.
func TestDockerInside(t *testing.T) {
	d := newDocker(t)
	work, tree := t.TempDir(), t.TempDir()
	if err := os.Chmod(work, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := smallSpec(lab.Image(t, "docker"), "sh", "-c", `
id -u; id -g; pwd
grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\t'
touch /job/made && echo wrote work
touch /tree/made 2>/dev/null || echo read-only tree
touch /made 2>/dev/null || echo read-only root
touch /tmp/made && echo wrote tmp
df -m /tmp | tail -1 | awk '{print $2}'
ls /sys/class/net
ulimit -c`)
	spec.User, spec.Workdir, spec.TmpMiB = "1234:5678", "/job", 7
	spec.Mounts = []Mount{{Source: work, Target: "/job", Writable: true}, {Source: tree, Target: "/tree"}}
	var log logBuffer
	got, err := d.Run(t.Context(), spec, IO{Log: &log})
	const want = "1234\n5678\n/job\nCapBnd:0000000000000000\nNoNewPrivs:1\nwrote work\nread-only tree\nread-only root\nwrote tmp\n7\nlo\n0\n"
	if err != nil || got.Code != 0 || log.String() != want {
		t.Errorf("Run = %+v, %v with output\n%s\nwant\n%s", got, err, log.String(), want)
	}
	if !exists(filepath.Join(work, "made")) {
		t.Error("what the job wrote is not seen outside")
	}
}

// The line reaches the worker beside the output when the output has none that
// verifies.
func TestDockerSecondChannel(t *testing.T) {
	d := newDocker(t)
	// The command closes the supervisor's own output before it ends.
	spec := smallSpec(lab.SupervisedImage(t, "docker"), "sh", "-c", "exit 5")
	got, err := d.Run(t.Context(), spec, IO{Key: exit.NewKey()})
	if err != nil || got.SecondChannel {
		t.Errorf("Run = %+v, %v, want the line from the output", got, err)
	}
	// An image whose supervisor writes to the file alone.
	spec = smallSpec(lab.Image(t, "docker"), "-c", "exec /run/dispatch-supervisor --key-stdin --exit-file="+ExitFile+" -- sh -c 'exit 5' >/dev/null")
	spec.Entrypoint = "/bin/sh"
	spec.Mounts = []Mount{{Source: lab.Supervisor(t), Target: "/bin/other-supervisor"}}
	spec.Args[1] = strings.Replace(spec.Args[1], "/run/dispatch-supervisor", "/bin/other-supervisor", 1)
	got, err = d.Run(t.Context(), spec, IO{Key: exit.NewKey()})
	if err != nil || got.Code != 5 || got.Auth != exit.Verified || !got.SecondChannel || *got.Line.Code != 5 {
		t.Errorf("Run = %+v, %v, want a verified line by the second channel", got, err)
	}
}

func TestDynamicSupervisorIsRefused(t *testing.T) {
	if err := checkStatic(lab.Supervisor(t)); err != nil {
		t.Errorf("checkStatic of a static program = %v", err)
	}
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/bin/ls", text, text + ".absent"} {
		err := checkStatic(path)
		if err == nil || !strings.Contains(err.Error(), filepath.Base(path)) || strings.Contains(err.Error(), filepath.Dir(text)) {
			t.Errorf("checkStatic(%s) = %v, want an error that names the file alone", filepath.Base(path), err)
		}
	}
	f := newFake(t, script{})
	spec := smallSpec("image", "true")
	spec.Supervisor = []string{"/bin/ls"}
	if got, err := f.Run(t.Context(), spec, IO{}); err == nil || got != (Result{}) || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("Run = %+v, %v, want a refusal that says how to build it", got, err)
	}
	if calls := f.calls(t, "run"); len(calls) > 0 {
		t.Errorf("started %q", calls)
	}
}

// A secret goes to the container and nowhere else.
func TestDockerSecretsStayIn(t *testing.T) {
	var notes, log logBuffer
	d := newDocker(t, shortGrace, func(c *DockerConfig) { c.Log = textLogger(&notes) })
	key := exit.NewKey()
	const marked = "marked-value-7d1f"
	spec := smallSpec(lab.SupervisedImage(t, "docker"), "sh", "-c", `echo "got ${#SECRET}"; echo ready; sleep 1000`)
	spec.Env = map[string]string{"SECRET": marked}
	spec.Name = NewName("secret-", "job", 1)

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	log.awaited, log.found = "ready\n", make(chan struct{})
	var result Result
	var runErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, runErr = d.Run(ctx, spec, IO{Key: key, Log: &log})
	}()
	select {
	case <-log.found:
	case <-done:
		t.Fatalf("Run = %+v, %v before it was ready\n%s", result, runErr, log.String())
	}
	secrets := []string{marked, key.Reveal()}
	state, err := d.Inspect(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	seen := procText(t, "cmdline", func(pid string) bool { return true })
	// The container's own processes have the job's environment, not the key.
	seen += procText(t, "environ", func(pid string) bool { return !inContainer(pid, state.ID) })
	for _, secret := range secrets {
		if strings.Contains(seen, secret) {
			t.Errorf("a process of the host shows %.6q…", secret)
		}
	}
	if inside := procText(t, "environ", func(pid string) bool { return inContainer(pid, state.ID) }); !strings.Contains(inside, marked) || strings.Contains(inside, key.Reveal()) {
		t.Error("the container's environment lacks the value, or has the key")
	}
	if labels := docker(t, "inspect", "--format={{json .Config.Labels}} {{json .Args}}", state.ID); strings.Contains(labels, marked) || strings.Contains(labels, key.Reveal()) {
		t.Errorf("labels or arguments show a secret: %s", labels)
	}
	if all := docker(t, "inspect", state.ID); strings.Contains(all, key.Reveal()) {
		t.Error("docker inspect shows the key")
	}
	for path, text := range filesBelow(t, d.config.Instance.folder) {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("file %s shows %.6q… while the container runs", path, secret)
			}
		}
	}
	cancel(ErrCancelled)
	<-done
	if runErr != nil {
		t.Fatal(runErr)
	}
	for name, text := range map[string]string{"output": log.String(), "log": notes.String(), "result": fmt.Sprintf("%+v", result)} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s shows %.6q…", name, secret)
			}
		}
	}
	if left := filesBelow(t, d.config.Instance.files()); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// procText joins a file of every process that passes.
func procText(t *testing.T, file string, pass func(pid string) bool) string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no process seen: %v", err)
	}
	var all []string
	for _, path := range paths {
		if pid := strings.Split(path, "/")[2]; pid != fmt.Sprint(os.Getpid()) && pass(pid) {
			text, _ := os.ReadFile(path)
			all = append(all, string(text))
		}
	}
	return strings.Join(all, "\n")
}

func inContainer(pid, id string) bool {
	text, _ := os.ReadFile("/proc/" + pid + "/cgroup")
	return strings.Contains(string(text), id)
}

func filesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			all[path] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A container of an engine that can't make it is removed, and its end is not
// taken for a success.
func TestDockerCreatedIsNoSuccess(t *testing.T) {
	d := newDocker(t)
	spec := smallSpec(lab.Image(t, "docker"), "true")
	spec.Workdir = "/bin/busybox/below-a-file"
	got, err := d.Run(t.Context(), spec, IO{})
	if err != nil || !got.NeverStarted || got.Code != -1 {
		t.Errorf("Run = %+v, %v, want a run that never started", got, err)
	}
}

// Cancelled at any instant of its start, a run leaves nothing and says that it
// was aborted.
func TestDockerCancelAtAnyTime(t *testing.T) {
	d := newDocker(t, shortGrace)
	image := lab.Image(t, "docker")
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for after := time.Millisecond; after < 3*time.Second; after *= 3 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, ErrTimeout)
		got, err := d.Run(ctx, smallSpec(image, "sleep", "1000"), IO{})
		cancel()
		if err != nil || !got.Aborted || got.Code != 137 || got.Orphan || got.Detached || got.Cause != ErrTimeout {
			t.Errorf("Run cancelled after %v = %+v, %v, want it aborted", after, got, err)
		}
		if left, err := d.List(t.Context(), Labels{Instance: d.config.Instance.ID()}); err != nil || len(left) > 0 {
			t.Errorf("cancelled after %v, left %+v, %v", after, left, err)
		}
	}
}

func TestDockerNoDaemon(t *testing.T) {
	d, err := NewDocker(DockerConfig{Daemon: "unix://" + filepath.Join(t.TempDir(), "none.sock"), Instance: newTestInstance(t, t.TempDir())})
	if errors.Is(err, ErrUnavailable) {
		lab.Missing(t, "docker", err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Run(t.Context(), smallSpec("image", "true"), IO{})
	if !errors.Is(err, ErrUnavailable) || got != (Result{}) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Run = %+v, %v, want ErrUnavailable on one line", got, err)
	}
	if _, err := NewDocker(DockerConfig{Client: "no-such-client", Instance: d.config.Instance}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("NewDocker without a client = %v, want ErrUnavailable", err)
	}
	if _, err := NewDocker(DockerConfig{}); err == nil || !strings.Contains(err.Error(), "Instance") {
		t.Errorf("NewDocker without an instance = %v", err)
	}
}

func TestDockerFacts(t *testing.T) {
	d := newDocker(t)
	f, err := d.Facts(t.Context())
	cpus, ok := f.CPUs.Value()
	if err != nil || !ok || cpus < 1 || f.Version == "" || !slices.Contains([]string{"v1", "v2"}, f.Cgroup) || !f.Isolated {
		t.Errorf("Facts = %+v, %v", f, err)
	}
}
