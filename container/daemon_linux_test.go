package container

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edgehero/dispatch/internal/lab"
)

// A dockerDaemon is a dockerd of the test's own, over a containerd of its own,
// with folders of their own. Both are ended by their pids.
type dockerDaemon struct {
	folder string
	live   bool // containers outlive it (live restore)
	cmd    *exec.Cmd
	ended  chan struct{}
}

// newDaemon starts a daemon, which DOCKER_HOST then names.
func newDaemon(t *testing.T, live bool) *dockerDaemon {
	t.Helper()
	for _, program := range []string{"docker", "dockerd", "containerd"} {
		if _, err := exec.LookPath(program); err != nil {
			lab.Missing(t, "docker", err.Error())
		}
	}
	if os.Geteuid() != 0 {
		lab.Missing(t, "docker", "only root starts a daemon")
	}
	// Not t.TempDir: a socket's path has to be short.
	folder, err := os.MkdirTemp("", "dd")
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerDaemon{folder: folder, live: live}
	t.Cleanup(func() { d.clear(t) })
	writeFile(t, d.path("docker.json"), "{}")
	writeFile(t, d.path("containerd.toml"), "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n")
	d.run(t, "containerd", "--config="+d.path("containerd.toml"), "--root="+d.path("croot"),
		"--state="+d.path("cstate"), "--address="+d.path("csock"))
	t.Setenv("DOCKER_HOST", "unix://"+d.path("sock"))
	d.start(t)
	return d
}

func (d *dockerDaemon) path(name string) string { return filepath.Join(d.folder, name) }

// run starts a program that is ended by kill or clear, and closes ended with it.
func (d *dockerDaemon) run(t *testing.T, name string, args ...string) (cmd *exec.Cmd, ended chan struct{}) {
	t.Helper()
	log, err := os.OpenFile(d.path("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd = exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// In a network namespace of its own: a dockerd without a bridge removes the
	// one that another daemon of this host uses.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	return cmd, ended
}

// start starts the daemon and waits until it answers.
func (d *dockerDaemon) start(t *testing.T) {
	t.Helper()
	d.cmd, d.ended = d.run(t, "dockerd", "--containerd="+d.path("csock"), "--data-root="+d.path("data"),
		"--exec-root="+d.path("exec"), "--pidfile="+d.path("pid"), "--host=unix://"+d.path("sock"),
		"--config-file="+d.path("docker.json"), "--bridge=none", "--iptables=false", "--ip6tables=false",
		"--live-restore="+strconv.FormatBool(d.live))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for exec.CommandContext(ctx, "docker", "version").Run() != nil {
		select {
		case <-ctx.Done():
		case <-d.ended:
		case <-time.After(50 * time.Millisecond):
			continue
		}
		log, _ := os.ReadFile(d.path("log"))
		t.Fatalf("dockerd does not answer; the end of its log:\n%s", log[max(0, len(log)-2000):])
	}
}

// kill ends the daemon at once; its containers may go on.
func (d *dockerDaemon) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Errorf("kill dockerd: %v", err)
	}
	<-d.ended
}

// clear ends all that the daemon started, and removes its folder. Each process
// is told by the folder's name on its command line.
func (d *dockerDaemon) clear(t *testing.T) {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.ended:
		case <-time.After(20 * time.Second):
		}
	}
	for range 100 {
		left, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		found := false
		for _, path := range left {
			text, _ := os.ReadFile(path)
			if bytes.Contains(text, []byte(d.folder+"/")) {
				pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
				_ = unix.Kill(pid, unix.SIGKILL)
				found = true
			}
		}
		if !found {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.folder+"/") {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(d.folder); err != nil {
		t.Errorf("remove the daemon's folder: %v", err)
	}
}

// A daemon that is killed under a running job takes neither the job out of
// sight nor what it has spent.
func TestDaemonKilled(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run("live restore "+strconv.FormatBool(live), func(t *testing.T) {
			daemon := newDaemon(t, live)
			image := lab.Image(t, "docker")
			t.Run("and started again", func(t *testing.T) { testDaemonRestarted(t, daemon, image) })
			t.Run("and gone for long", func(t *testing.T) { testDaemonGone(t, daemon, image) })
		})
	}
}

// loseDaemon runs a job and kills its daemon; meanwhile is called once the
// daemon is gone, while the run goes on.
func loseDaemon(t *testing.T, daemon *dockerDaemon, d *Docker, image string, meanwhile func()) Result {
	t.Helper()
	log := &logBuffer{awaited: "ready\n", found: make(chan struct{})}
	var result Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = d.Run(t.Context(), smallSpec(image, "sh", "-c", `trap "exit 143" TERM; echo ready; while :; do sleep 0.1; done`), IO{Log: log})
	}()
	select {
	case <-log.found:
	case <-ended:
		t.Fatalf("Run = %+v, %v before it was ready: %s", result, err, log.String())
	}
	daemon.kill(t)
	meanwhile()
	<-ended
	if err != nil || result.NeverStarted || result.Aborted || result.Code == 0 {
		t.Errorf("Run = %+v, %v, want a run that did start and was no success", result, err)
	}
	return result
}

func testDaemonRestarted(t *testing.T, daemon *dockerDaemon, image string) {
	d := newDocker(t, shortGrace)
	d.bounds.ask = 5 * time.Minute // as long as the daemon takes
	result := loseDaemon(t, daemon, d, image, func() { daemon.start(t) })
	if result.Orphan || daemon.live && !result.Detached {
		t.Errorf("Run = %+v, want it stopped, and detached where it ran on", result)
	}
	if left, err := d.List(t.Context(), Labels{Instance: d.config.Instance.ID()}); err != nil || len(left) > 0 {
		t.Errorf("List = %+v, %v, want nothing left", left, err)
	}
}

func testDaemonGone(t *testing.T, daemon *dockerDaemon, image string) {
	folder := t.TempDir()
	owner := newTestInstance(t, folder)
	d := newDocker(t, shortGrace, func(c *DockerConfig) { c.Instance = owner })
	sweeper := newDocker(t, shortGrace)
	d.bounds.ask = 200 * time.Millisecond
	result := loseDaemon(t, daemon, d, image, func() {})
	if !result.Detached || !result.Orphan || result.Code != -1 {
		t.Errorf("Run = %+v, want it detached and an orphan", result)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	config := SweepConfig{Folder: folder, Holders: []Holder{sweeper}}
	if got, err := Sweep(t.Context(), config); !errors.Is(err, ErrUnavailable) || len(got) > 0 || !exists(filepath.Join(folder, owner.ID())) {
		t.Errorf("Sweep without a daemon = %+v, %v, want ErrUnavailable and the instance's file kept", got, err)
	}
	daemon.start(t)
	got := sweep(t, config)
	if len(got) != 1 || got[0].Name != result.Name || !got[0].Gone || exists(filepath.Join(folder, owner.ID())) {
		t.Errorf("Sweep = %+v, want container %s gone, and the instance's file with it", got, result.Name)
	}
	if _, err := sweeper.Inspect(t.Context(), result.Name); !errors.Is(err, ErrUnknown) {
		t.Errorf("Inspect = %v, want ErrUnknown", err)
	}
}

// A client that is killed leaves its container to be found by its label.
func TestClientKilled(t *testing.T) {
	d := newDocker(t, shortGrace)
	log := &logBuffer{awaited: "ready\n", found: make(chan struct{})}
	spec := smallSpec(lab.Image(t, "docker"), "sh", "-c", "echo ready; sleep 1000")
	spec.Name = NewName("killed-", "job", 1)
	var result Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = d.Run(t.Context(), spec, IO{Log: log})
	}()
	select {
	case <-log.found:
	case <-ended:
		t.Fatalf("Run = %+v, %v before it was ready: %s", result, err, log.String())
	}
	killed := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		if bytes.Contains(text, []byte("\x00run\x00")) && bytes.Contains(text, []byte("\x00--name="+spec.Name+"\x00")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			if err := unix.Kill(pid, unix.SIGKILL); err == nil {
				killed++
			}
		}
	}
	<-ended
	if killed != 1 || err != nil || !result.Detached || result.NeverStarted || result.Aborted || result.Orphan || result.Code != -1 || result.Started.IsZero() {
		t.Errorf("Run = %+v, %v with %d clients killed, want it detached and stopped", result, err, killed)
	}
}
