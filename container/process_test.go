package container

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container/supervisor"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// The test binary is its own supervisor, the worker that is killed, and every
// job of these tests.
func init() {
	if len(os.Args) < 2 {
		return
	}
	processJobs["leave"], processJobs["keep"], processJobs["orphan"] = leave, keep, orphan
	switch os.Args[1] {
	case "supervise":
		os.Exit(supervisor.Main(os.Args[2:]))
	case "job":
		processJobs[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
}

var processJobs = map[string]func(args []string){
	"here": func([]string) { fmt.Println("here", os.Getpid()); time.Sleep(time.Hour) },
	"deaf": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("here", os.Getpid())
		time.Sleep(time.Hour)
	},
	// freeze stops its own supervisor.
	"freeze": func([]string) {
		syscall.Kill(os.Getppid(), syscall.SIGSTOP)
		fmt.Println("here", os.Getpid())
		time.Sleep(time.Hour)
	},
	// hog fills a number of MiB.
	"hog": func(args []string) {
		mib, _ := strconv.Atoi(args[0])
		var held [][]byte
		for range mib {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			held = append(held, block)
		}
		fmt.Println("held", len(held))
	},
	// limits prints the bounds of its own cgroup.
	"limits": func([]string) {
		own, _ := os.ReadFile("/proc/self/cgroup")
		dir := "/sys/fs/cgroup" + strings.TrimSpace(strings.TrimPrefix(string(own), "0::"))
		for _, file := range []string{"memory.max", "memory.swap.max", "memory.oom.group", "cpu.weight", "cpu.max", "pids.max"} {
			text, err := os.ReadFile(dir + "/" + file)
			if err != nil {
				fmt.Println(err)
			}
			fmt.Printf("%s:%s", file, text)
		}
	},
	// parent-of-hog outlives a child that fills too much.
	"parent-of-hog": func(args []string) {
		err := exec.Command("/proc/self/exe", append([]string{"job", "hog"}, args...)...).Run()
		fmt.Println("child:", err)
	},
	// crowd fills memory with many small programs.
	"crowd": func(args []string) {
		const script = `for i in $(seq $0); do { head -c $1 /dev/zero | tail -c $1 | sleep 2; } & done; wait`
		sh, err := exec.LookPath("sh")
		if err == nil {
			err = syscall.Exec(sh, append([]string{"sh", "-c", script}, args...), os.Environ())
		}
		fmt.Println("crowd:", err)
		os.Exit(99)
	},
	// worker runs a job as a worker does, until it is killed itself.
	"worker": func(args []string) { runAsWorker(args[0], args[1], args[2:]) },
}

// leave starts a job in a session of its own and ends once that is there.
func leave(args []string) {
	cmd := exec.Command("/proc/self/exe", append([]string{"job"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	startAndPassFirstLine(cmd)
}

// keep is leave for a job that stays, too.
func keep(args []string) { leave(args); time.Sleep(time.Hour) }

// orphan ends its own supervisor, having left a job behind.
func orphan(args []string) { leave(args); syscall.Kill(os.Getppid(), syscall.SIGKILL) }

// startAndPassFirstLine starts a command and prints the first line it prints.
func startAndPassFirstLine(cmd *exec.Cmd) {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Println("start:", err)
		os.Exit(99)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line)
}

func runAsWorker(folder, parent string, command []string) {
	instance, err := NewInstance(folder)
	if err != nil {
		fmt.Println("worker:", err)
		os.Exit(99)
	}
	self, _ := os.Executable()
	p, err := NewProcess(ProcessConfig{Supervisor: []string{self, "supervise"}, Instance: instance, CgroupParent: parent})
	if err == nil {
		_, err = p.Run(context.Background(), smallSpec("", append([]string{self, "job"}, command...)...), IO{Log: os.Stdout})
	}
	fmt.Println("worker:", err)
}

// newProcess returns a process runtime whose supervisor is the test binary.
func newProcess(t testing.TB, change ...func(*ProcessConfig)) *Process {
	t.Helper()
	config := ProcessConfig{
		Supervisor: []string{self(t), "supervise"},
		Instance:   newTestInstance(t, t.TempDir()),
		Host:       "host-1",
		Grace:      200 * time.Millisecond,
	}
	for _, f := range change {
		f(&config)
	}
	p, err := NewProcess(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// jobSpec is a job of this test binary.
func jobSpec(t testing.TB, args ...string) Spec {
	t.Helper()
	return smallSpec("", append([]string{self(t), "job"}, args...)...)
}

// A hereLog is a run log that tells the pid that a job prints as it arrives.
type hereLog struct {
	bytes.Buffer
	pid chan int
}

func newHereLog() *hereLog { return &hereLog{pid: make(chan int, 1)} }

func (l *hereLog) Write(p []byte) (int, error) {
	before := l.Len()
	l.Buffer.Write(p)
	var pid int
	if _, err := fmt.Sscanf(l.String(), "here %d\n", &pid); err == nil && !bytes.Contains(l.Bytes()[:before], []byte("\n")) && bytes.Contains(l.Bytes(), []byte("\n")) {
		l.pid <- pid
	}
	return len(p), nil
}

// wantDead fails the test unless pid is gone soon: what was killed can take a
// moment to be reaped.
func wantDead(t testing.TB, pid int) {
	t.Helper()
	for range 500 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestProcessResult(t *testing.T) {
	p := newProcess(t)
	key := exit.NewKey()
	var log bytes.Buffer
	spec := smallSpec("", "sh", "-c", "cat; echo to stderr >&2; exit 3")
	result, err := p.Run(t.Context(), spec, IO{Key: key, Stdin: strings.NewReader("input\n"), Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 3 || result.Auth != exit.Verified || result.Line == nil || *result.Line.Code != 3 || !result.Line.BySupervisor {
		t.Errorf("Run = %+v, want code 3 in a verified line", result)
	}
	if result.Aborted || result.NeverStarted || result.Detached || result.Orphan || !result.MemoryLimit.IsOff() {
		t.Errorf("Run = %+v, want a run that ended by itself, without bounds", result)
	}
	if result.Started.IsZero() || result.Ended.Before(result.Started) || result.Name == "" {
		t.Errorf("Run = %+v, want its name and instants", result)
	}
	if got := log.String(); !strings.HasPrefix(got, key.Reveal()+"\ninput\n") || !strings.Contains(got, "to stderr") {
		// A command that signs for itself gets the key, and this one prints it.
		t.Errorf("the log has %d bytes, want the job's input and its stderr", len(got))
	}
}

func TestProcessPlainCommand(t *testing.T) {
	p := newProcess(t)
	key := exit.NewKey()
	var log bytes.Buffer
	spec := smallSpec("", "sh", "-c", "cat; tr '\\0' ' ' </proc/$PPID/cmdline; exit 3")
	spec.PlainCommand = true
	result, err := p.Run(t.Context(), spec, IO{Key: key, Stdin: strings.NewReader("input\n"), Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 2 || result.Auth != exit.Verified || *result.Line.Code != 2 {
		t.Errorf("Run = %+v, want code 2: it ran and failed", result)
	}
	if got := log.String(); strings.Contains(got, key.Reveal()) || !strings.HasPrefix(got, "input\n") {
		t.Errorf("log = %q, want the input alone and no key", got)
	}
}

func TestProcessRefuses(t *testing.T) {
	folder := t.TempDir()
	tests := []struct {
		name   string
		change func(*Spec)
		want   string
		is     error
	}{
		{"an image", func(s *Spec) { s.Image = "busybox" }, "busybox", ErrImageMissing},
		{"no command", func(s *Spec) { s.Args = nil }, "no command", nil},
		{"an extra flag", func(s *Spec) { s.ExtraFlags = []string{"--dns=1.1.1.1"} }, "--dns", nil},
		{"a mount elsewhere", func(s *Spec) { s.Mounts = []Mount{{Source: folder, Target: "/workspace"}} }, "/workspace", nil},
		{"a mount of nothing", func(s *Spec) { s.Mounts = []Mount{{Source: "/no/such", Target: "/no/such"}} }, "/no/such", nil},
		{"a relative mount", func(s *Spec) { s.Mounts = []Mount{{Source: "here", Target: "here"}} }, "here", nil},
		{"a folder to work in that is none", func(s *Spec) { s.Workdir = "/no/such" }, "/no/such", nil},
		{"a relative folder to work in", func(s *Spec) { s.Workdir = "." }, `"."`, nil},
		{"root", func(s *Spec) { s.User = "0" }, `"0"`, nil},
		{"a user's name", func(s *Spec) { s.User = "nobody" }, "nobody", nil},
		{"a reserved variable", func(s *Spec) { s.Env = map[string]string{"PI_DISPATCH_RUNNER_PID": "1"} }, "PI_DISPATCH_RUNNER_PID", nil},
		{"no size", func(s *Spec) { s.Size = jobsize.Size{} }, "memory", nil},
		{"a supervisor that is not there", func(s *Spec) { s.Supervisor = []string{"/no/such"} }, "supervisor", ErrUnavailable},
		{"a relative supervisor", func(s *Spec) { s.Supervisor = []string{"supervisor"} }, "supervisor", nil},
	}
	p := newProcess(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := smallSpec("", "touch", filepath.Join(folder, "ran"))
			test.change(&spec)
			result, err := p.Run(t.Context(), spec, IO{Key: exit.NewKey()})
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("Run = %v, want an error with %q that is %v", err, test.want, test.is)
			}
			if result != (Result{}) {
				t.Errorf("Run = %+v beside an error", result)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(folder, "ran")); err == nil {
		t.Error("a refused job ran")
	}
}

func TestNewProcessRefuses(t *testing.T) {
	for _, config := range []ProcessConfig{
		{CgroupParent: "/sys/fs/cgroup/no-such"},
		{CgroupParent: t.TempDir(), Instance: newTestInstance(t, t.TempDir())},
		{Grace: -1},
	} {
		if p, err := NewProcess(config); err == nil || p != nil {
			t.Errorf("NewProcess(%+v) = %v, %v, want an error", config, p, err)
		}
	}
}

func TestProcessEnvironment(t *testing.T) {
	t.Setenv("OF_THE_HOST", "secret")
	p := newProcess(t)
	for _, env := range []map[string]string{nil, {"A": "1", "B": "two words", "PATH": "/bin:/usr/bin"}} {
		var log bytes.Buffer
		spec := smallSpec("", "env")
		spec.Env = env
		if _, err := p.Run(t.Context(), spec, IO{Log: &log}); err != nil {
			t.Fatal(err)
		}
		want := []string{"PATH=" + defaultPath}
		if env != nil {
			want = []string{"A=1", "B=two words", "PATH=/bin:/usr/bin"}
		}
		before, _, _ := strings.Cut(log.String(), "\n\n")
		got := strings.Split(before, "\n")
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("environment of %v = %q, want %q", env, got, want)
		}
	}
}

func TestProcessWorksInItsFolder(t *testing.T) {
	folder := t.TempDir()
	spec := smallSpec("", "touch", "made")
	spec.Workdir = folder
	spec.Mounts = []Mount{{Source: folder, Target: folder, Writable: true}}
	if result, err := newProcess(t).Run(t.Context(), spec, IO{}); err != nil || result.Code != 0 {
		t.Fatalf("Run = %+v, %v", result, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "made")); err != nil {
		t.Error("the job did not work in its folder")
	}
}

func TestProcessUser(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Missing(t, "root", "run the tests as root to run a job as another user")
	}
	var log bytes.Buffer
	spec := smallSpec("", "sh", "-c", "id -u; id -g; id -G")
	spec.User = "65534"
	// A program that nobody may execute.
	spec.Supervisor = []string{publicCopy(t), "supervise"}
	if _, err := newProcess(t).Run(t.Context(), spec, IO{Log: &log}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(log.String(), "65534\n65534\n65534\n") {
		t.Errorf("ids = %q, want those of the spec", log.String())
	}
}

// publicCopy copies the test binary to where every user may execute it.
func publicCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dispatch-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(self(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program"), text, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "program")
}

// A job that was stopped ends with its supervisor's line, also when it was deaf.
func TestProcessStopped(t *testing.T) {
	p := newProcess(t)
	for _, job := range []string{"here", "deaf", "keep deaf"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			log := newHereLog()
			pid := make(chan int, 1)
			go func() { pid <- <-log.pid; cancel(ErrCancelled) }()
			result, err := p.Run(ctx, jobSpec(t, strings.Fields(job)...), IO{Key: exit.NewKey(), Log: log})
			if err != nil {
				t.Fatal(err)
			}
			wantAborted(t, result, ErrCancelled)
			if result.Auth != exit.Verified {
				t.Errorf("Auth = %q, want the line of a supervisor that ended in order", result.Auth)
			}
			wantDead(t, <-pid)
		})
	}
}

// What a job leaves is ended with it, and does not hold its output open.
func TestProcessLeavesNothing(t *testing.T) {
	log := newHereLog()
	result, err := newProcess(t).Run(t.Context(), jobSpec(t, "leave", "leave", "deaf"), IO{Key: exit.NewKey(), Log: log})
	if err != nil || result.Code != 0 || result.Auth != exit.Verified {
		t.Errorf("Run = %+v, %v, want a verified 0", result, err)
	}
	wantDead(t, <-log.pid)
}

// A job that ends its own supervisor gets no line, and no success.
func TestProcessEndsItsSupervisor(t *testing.T) {
	log := newHereLog()
	result, err := newProcess(t).Run(t.Context(), jobSpec(t, "orphan", "deaf"), IO{Key: exit.NewKey(), Log: log})
	if err != nil || result.Code != 137 || result.Auth != exit.Unverified || result.Line != nil {
		t.Errorf("Run = %+v, %v, want 137 without a line", result, err)
	}
	syscall.Kill(<-log.pid, syscall.SIGKILL) // out of reach without a cgroup
}

func TestProcessDiesWithItsWorker(t *testing.T) {
	wantDead(t, killWorker(t, t.TempDir(), "", "keep", "deaf"))
	wantDead(t, killWorker(t, t.TempDir(), "", "deaf"))
}

// killWorker kills a worker whose job has arrived, and returns the job's pid.
func killWorker(t *testing.T, folder, parent string, job ...string) int {
	t.Helper()
	cmd := exec.Command(self(t), append([]string{"job", "worker", folder, parent}, job...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(line, "here %d\n", &pid); err != nil {
		t.Fatalf("the worker's first line is %q: %v", line, err)
	}
	return pid
}
