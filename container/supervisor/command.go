package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/exit"
)

// statusFD is the descriptor on which the second image says why it could not
// become the command.
const statusFD = 3

// A command is the job's command, started.
type command struct {
	pid    int
	ended  bool // and status is valid
	status syscall.WaitStatus
	alone  bool // no child is left, neither the command nor an adopted one
}

// A startError says that the command could not be executed.
type startError struct {
	code int // 126 or 127
	text string
}

func (e startError) Error() string { return e.text }

// start starts the command in a process group of its own: a command that
// signals its whole group does not reach the supervisor.
func (c Config) start(key exit.Key) (*command, error) {
	// The command's parent death signal is bound to the thread that starts it.
	runtime.LockOSThread()
	stdin, handOn, err := c.input(key)
	if err != nil {
		return nil, fmt.Errorf("start the command: make its input: %w", err)
	}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	defer statusRead.Close()
	self, err := ownImage()
	if err != nil {
		return nil, fmt.Errorf("start the command: find this program: %w", err)
	}
	argv := append([]string{os.Args[0]}, c.Self...)
	argv = append(append(argv, startFlag), c.Command...)
	pid, err := syscall.ForkExec(self, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{stdin.Fd(), 1, 2, statusWrite.Fd()},
		Sys:   commandAttr(),
	})
	statusWrite.Close()
	if err != nil {
		return nil, fmt.Errorf("start the command through this program: %w", err)
	}
	letGoOfInput(stdin)
	handOn()
	cmd := &command{pid: pid}
	return cmd, cmd.awaitExec(statusRead)
}

// awaitExec returns once the second image has become the command, or has said
// why it could not.
func (cmd *command) awaitExec(status io.Reader) error {
	said, _ := io.ReadAll(io.LimitReader(status, 1024))
	if len(said) == 0 {
		return nil
	}
	for !cmd.ended {
		if _, err := syscall.Wait4(cmd.pid, &cmd.status, 0, nil); err != syscall.EINTR {
			cmd.ended = true
		}
	}
	return startError{cmd.status.ExitStatus(), string(said)}
}

// becomeCommand is the second image of this program: it replaces itself by the
// command, and returns only when it can't.
func becomeCommand(argv []string) int {
	syscall.CloseOnExec(statusFD)
	volunteerForOOM()
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = syscall.Exec(path, argv, os.Environ())
	}
	code := codeNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = codeNotFound
	}
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err // without the name, which stands before it already
	}
	text := fmt.Sprintf("start the command %.80q: %v", argv[0], err)
	_, _ = syscall.Write(statusFD, []byte(text))
	return code
}

// input returns what the command has as its standard input, and what is to be
// called once the command runs.
func (c Config) input(key exit.Key) (stdin *os.File, handOn func(), err error) {
	if !c.Runner {
		return os.Stdin, func() {}, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	first := strings.NewReader(key.Reveal() + "\n")
	return read, func() { go handOnInput(write, first) }, nil
}

// handOnInput copies the key's line and then this process's input to a command
// that signs for itself.
func handOnInput(to *os.File, keyLine io.Reader) {
	defer to.Close()
	if _, err := io.Copy(to, keyLine); err == nil {
		// The plain copy: an *os.File of this process would be spliced, which
		// sets its descriptor to non-blocking for all who share it.
		_, _ = io.Copy(to, struct{ io.Reader }{os.Stdin})
	}
	letGoOfInput(os.Stdin)
}

// letGoOfInput closes this process's end of the command's input, so that
// whoever writes it learns when the command stops reading. Standard input is
// replaced, never closed: another file would take its number.
func letGoOfInput(stdin *os.File) {
	if stdin != os.Stdin {
		stdin.Close()
		return
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return
	}
	defer null.Close()
	_ = dup2(int(null.Fd()), 0)
}

// reap takes the status of every child that has ended: the command, and what it
// left to this process.
func (cmd *command) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			cmd.alone = true
			return
		case pid == 0:
			return
		case pid == cmd.pid:
			cmd.ended, cmd.status = true, status
		}
	}
}

// killRest kills what the command left, and the command, and reports whether
// all of it is gone.
func (cmd *command) killRest(child <-chan os.Signal) bool {
	limit := time.After(killTime)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		killOthers(cmd)
		cmd.reap()
		if cmd.alone {
			return true
		}
		select {
		case <-child:
		case <-again.C:
		case <-limit:
			return false
		}
	}
}

// spareThreads is more than this process ever has waiting in the kernel at one
// time.
const spareThreads = 8

// startThreads makes the runtime hold n idle threads. It starts threads as it
// needs them and ends the process when it can't: with these at hand it needs
// none, however many tasks the command holds.
func startThreads(n int) {
	runtime.GOMAXPROCS(2)
	started := make(chan struct{})
	release := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			started <- struct{}{}
			<-release
			runtime.UnlockOSThread()
		}()
	}
	for range n {
		<-started
	}
	close(release)
}
