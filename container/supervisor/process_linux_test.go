package supervisor_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
)

// nobody is a user without rights.
const nobody = 65534

func init() {
	maps.Copy(jobs, map[string]func(args []string){
		// headless ends its first thread and goes on in another.
		"headless": func([]string) {
			fmt.Println("here", os.Getpid())
			go forever()
			runtime.LockOSThread() // the main goroutine starts on the first thread
			syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
		},
		// look prints what it can learn of itself and of its supervisor.
		"look": func([]string) {
			for _, pid := range []string{"self", strconv.Itoa(os.Getppid())} {
				for _, file := range []string{"environ", "cmdline"} {
					text, err := os.ReadFile("/proc/" + pid + "/" + file)
					fmt.Printf("%s %q %v\n", file, text, err)
				}
			}
			_, err := os.Open("/proc/" + strconv.Itoa(os.Getppid()) + "/mem")
			fmt.Println("memory of the supervisor:", err)
			fmt.Println("traced:", syscall.PtraceAttach(os.Getppid()))
			mine, _ := os.ReadFile("/proc/self/oom_score_adj")
			theirs, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/oom_score_adj")
			fmt.Printf("oom score %s supervisor %s\n", strings.TrimSpace(string(mine)), strings.TrimSpace(string(theirs)))
			threads, _ := os.ReadDir("/proc/" + strconv.Itoa(os.Getppid()) + "/task")
			fmt.Println("threads at hand:", len(threads) > 8)
			io.Copy(os.Stdout, os.Stdin)
		},
	})
}

// bystander starts a process that is not the supervisor's, in this process's own
// group and session.
func bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := self("job", "cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestKillsItsDescendantsAlone(t *testing.T) {
	for _, job := range []string{
		"leave arrive",                   // a daemon
		"leave deaf",                     // that ignores requests
		"leave leave arrive",             // whose own parent is gone
		"leave headless",                 // that reads as a zombie
		"leave leave leave leave arrive", // further down
	} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			stranger := bystander(t)
			args := append([]string{"--", exe(t), "job"}, strings.Fields(job)...)
			r := start(t, exit.NewKey(), "", args...)
			pid := r.arrival()
			code, line, _ := r.end()
			if code != 0 || *line.Code != 0 {
				t.Errorf("exit code = %d, line's = %d, want the command's own 0", code, *line.Code)
			}
			wantGone(t, pid)
			if err := syscall.Kill(stranger.Process.Pid, 0); err != nil || isZombie(stranger.Process.Pid) {
				t.Errorf("a process that is no descendant was killed (%v)", err)
			}
		})
	}
}

// A command that forks and ends as fast as it can leaves nothing.
func TestKillsWhatForksOn(t *testing.T) {
	key := exit.NewKey()
	// Each generation starts the next and ends: at most a few run at one time.
	const relay = `relay() { (sleep 0.001; relay) & }; relay; echo here $$; cat`
	mark := fmt.Sprintf("relay-of-%d", os.Getpid())
	r := &run{Cmd: self("supervise", "--key-stdin", "--", "sh", "-c", relay, mark), t: t, key: key}
	input, err := r.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.begin()
	fmt.Fprintln(input, key.Reveal())
	r.arrival()
	// Beside the supervisor and the shell there is the relay, most of the time.
	for range 1000 {
		if len(commandLinesWith(t, mark)) > 2 {
			break
		}
	}
	input.Close()
	if code, _, _ := r.end(); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if got := r.stderr.String(); got != "" {
		t.Errorf("stderr = %q, want no word of what does not end", got)
	}
	for _, left := range commandLinesWith(t, mark) {
		t.Errorf("a process is left of the relay: %q", left)
	}
}

// commandLinesWith returns the command lines of all processes that hold mark.
func commandLinesWith(t *testing.T, mark string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("read /proc: %v", err)
	}
	var found []string
	for _, file := range files {
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(mark)) {
			found = append(found, string(line))
		}
	}
	return found
}

// As the first process of a PID namespace, the supervisor kills and reaps what
// it never started, too.
func TestFirstProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Missing(t, "root", "run the tests as root to make a PID namespace")
	}
	stranger := bystander(t)
	key := exit.NewKey()
	r := &run{Cmd: self("supervise", "--key-stdin", "--", exe(t), "job", "leave", "deaf"), t: t, key: key}
	r.Stdin = strings.NewReader(key.Reveal() + "\n")
	r.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	r.begin()
	r.arrival()
	if code, _, _ := r.end(); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if err := syscall.Kill(stranger.Process.Pid, 0); err != nil || isZombie(stranger.Process.Pid) {
		t.Errorf("a process outside the namespace was killed (%v)", err)
	}
}

// What a command can learn of its supervisor is not the key.
func TestCommandLearnsNoKey(t *testing.T) {
	key := exit.NewKey()
	r := &run{t: t, key: key}
	if os.Geteuid() == 0 {
		// Root may read everything. The program's file is handed over open: its
		// folder is not nobody's to enter.
		program, err := os.Open(exe(t))
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		r.Cmd = exec.Command("/proc/self/fd/5", "supervise", "--key-stdin", "--", "/proc/self/fd/5", "job", "look")
		r.ExtraFiles = []*os.File{program, program, program} // the supervisor uses 3 itself
		r.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	} else {
		r.Cmd = self("supervise", "--key-stdin", "--", exe(t), "job", "look")
	}
	r.Env = []string{"PATH=/usr/bin:/bin"} // a failure prints it
	r.Stdin = strings.NewReader(key.Reveal() + "\ninput")
	r.begin()
	code, _, out := r.end()
	if code != 0 || strings.Contains(out, key.Reveal()) {
		t.Errorf("exit code = %d, and the command found the key: %v", code, strings.Contains(out, key.Reveal()))
	}
	for _, want := range []string{
		"memory of the supervisor: open /proc/" + fmt.Sprint(r.Process.Pid) + "/mem: permission denied",
		"traced: operation not permitted",
		"oom score 1000 supervisor 0",
		"threads at hand: true",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the command does not say %q", want)
		}
	}
	if !strings.HasSuffix(out, "input") {
		t.Errorf("the command's input was not what follows the key")
	}
	if t.Failed() {
		t.Log(out)
	}
}
