package supervisor_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container/supervisor"
)

// The test binary is the supervisor, and every command that it runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor.Main(os.Args[2:]))
		case "job":
			job := jobs[os.Args[2]]
			job(os.Args[3:])
			os.Exit(0)
		}
	}
	// Under the race detector every process would stay a second after its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// jobs are commands for a supervisor to run.
var jobs = map[string]func(args []string){
	"exit":   func(args []string) { os.Exit(number(args[0])) },
	"print":  func(args []string) { fmt.Print(args[0]) },
	"signal": func(args []string) { raise(syscall.Signal(number(args[0]))) },
	// cat copies its input.
	"cat": func([]string) { io.Copy(os.Stdout, os.Stdin) },
	// arrive prints, and stays for ever.
	"arrive": func([]string) { fmt.Println("here", os.Getpid()); forever() },
	// deaf ignores what can be ignored.
	"deaf": func([]string) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("here", os.Getpid())
		forever()
	},
	// trap exits with the number of the first signal it gets.
	"trap": func([]string) {
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("here", os.Getpid())
		os.Exit(int((<-got).(syscall.Signal)))
	},
	// killgroup signals everything in its own process group.
	"killgroup": func([]string) { syscall.Kill(0, syscall.SIGKILL); forever() },
	// leave starts the rest of its arguments as a job, in a session of its own,
	// waits for its first line of output and ends before it.
	"leave": func(args []string) {
		cmd := self("job", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		check(err)
		check(cmd.Start())
		var line [100]byte
		n, err := out.Read(line[:])
		check(err)
		fmt.Print(string(line[:n]))
	},
	// nonblock makes the shared output non-blocking and fills it.
	"nonblock": func([]string) {
		check(syscall.SetNonblock(1, true))
		for {
			if _, err := syscall.Write(1, []byte(strings.Repeat("x", 4096))); err != nil {
				return
			}
		}
	},
}

func self(mode string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	check(err)
	return exec.Command(exe, append([]string{mode}, args...)...)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	check(err)
	return n
}

func raise(sig syscall.Signal) { syscall.Kill(os.Getpid(), sig); forever() }

func forever() { time.Sleep(time.Hour) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(99)
	}
}
