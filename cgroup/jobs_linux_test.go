package cgroup

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// jobVar names what this binary does instead of running tests: the processes
// that live in a leaf are this binary again.
const jobVar = "CGROUP_TEST_JOB"

func TestMain(m *testing.M) {
	if name := os.Getenv(jobVar); name != "" {
		os.Exit(runJob(name))
	}
	os.Exit(m.Run())
}

func runJob(name string) int {
	stdin := bufio.NewReader(os.Stdin)
	switch name {
	case "idle": // Until its input ends.
		fmt.Println("ready")
		io.Copy(io.Discard, stdin)
	case "stay":
		fmt.Println("ready")
		stay()
	case "eat": // 200 MB, touched.
		fmt.Println("ready")
		if _, err := stdin.ReadString('\n'); err != nil {
			return 1
		}
		b, err := unix.Mmap(-1, 0, 200_000_000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return 2
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
	case "busy": // One thread on the first processor, for ever.
		runtime.LockOSThread() // The affinity is this thread's.
		var first unix.CPUSet
		first.Set(0)
		if err := unix.SchedSetaffinity(0, &first); err != nil {
			return 2
		}
		fmt.Println("ready")
		for n := uint64(1); n > 0; n++ {
		}
	case "bomb":
		fmt.Println("ready")
		if _, err := stdin.ReadString('\n'); err != nil {
			return 1
		}
		return bomb()
	case "self": // Prints which cgroup it finds itself in, and what was used there.
		return printSelf()
	case "remount": // The same, with the cgroups mounted anew in its own namespaces.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return 2
		}
		// The kernel refuses the same tree twice at one place.
		if err := unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH); err != nil {
			fmt.Fprintln(os.Stderr, "unmount cgroup2:", err)
			return 3
		}
		if err := unix.Mount("cgroup", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil {
			fmt.Fprintln(os.Stderr, "mount cgroup2:", err)
			return 3
		}
		return printSelf()
	case "open": // Prints what opening the parent in its input comes to.
		path, _ := stdin.ReadString('\n')
		_, err := OpenParent(strings.TrimSpace(path))
		fmt.Println(err)
	case "owner": // A worker: makes a leaf, starts a job in it, and waits to be killed.
		return own(stdin)
	}
	return 0
}

// bomb forks without end, and every child does the same: only the kernel's bound
// stops it. Bare system calls, since the child of a bare fork has no Go runtime.
func bomb() int {
	child := false
	for {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			child = true
		}
		if errno != 0 {
			break
		}
	}
	if child {
		stay()
	}
	return 7
}

// stay never returns.
func stay() {
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

func printSelf() int {
	self := Self()
	err := json.NewEncoder(os.Stdout).Encode(struct {
		Self  Own
		Usage any
	}{self, self.Usage()})
	if err != nil {
		return 2
	}
	return 0
}

func own(stdin *bufio.Reader) int {
	path, _ := stdin.ReadString('\n')
	instance, _ := stdin.ReadString('\n')
	p, err := OpenParent(strings.TrimSpace(path))
	if err != nil {
		fmt.Println(err)
		return 2
	}
	leaf, err := p.Create(strings.TrimSpace(instance), "run", small)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	// Its output is ours, so that the test hears when it is ready.
	cmd := command(context.Background(), leaf, "stay")
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 2
	}
	stay()
	return 0
}

// command returns this binary as a job that starts inside the leaf.
func command(ctx context.Context, leaf *Leaf, job string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), jobVar+"="+job, "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	if leaf != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf.FD()}
	}
	return cmd
}

// A job is a process of this binary inside a leaf. go makes it begin.
type job struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (j job) begin(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(j.in, line+"\n"); err != nil {
		t.Fatalf("begin the job: %v", err)
	}
}

// line returns the job's next line of output.
func (j job) line(t testing.TB) string {
	t.Helper()
	line, err := j.out.ReadString('\n')
	if err != nil {
		t.Fatalf("read from the job: %v", err)
	}
	return strings.TrimSpace(line)
}

// start starts a job and waits until it is ready. It is killed when the test
// ends.
func start(t testing.TB, leaf *Leaf, name string) job {
	t.Helper()
	j := launch(t, command(t.Context(), leaf, name))
	if got := j.line(t); got != "ready" {
		t.Fatalf("the job %s says %q, want ready", name, got)
	}
	return j
}

func launch(t testing.TB, cmd *exec.Cmd) job {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start a job: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return job{cmd, in, bufio.NewReader(out)}
}
