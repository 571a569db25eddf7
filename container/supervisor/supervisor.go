package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/exit"
	"golang.org/x/sys/unix"
)

// Exit codes of a run whose command never ran, as shells and container engines
// use them.
const (
	codeFailed        = 125 // the supervisor itself could not do its work
	codeNotExecutable = 126
	codeNotFound      = 127
	codeKilled        = 128 + int(syscall.SIGKILL)
)

// killTime bounds how long the supervisor waits for what it killed. Only a
// process that the kernel can't end, or that another user owns, takes longer.
const killTime = 5 * time.Second

// A Config says how one command is supervised.
type Config struct {
	// Command is the program, a path or a name that PATH finds, and its
	// arguments. Required.
	Command []string
	// Self are the arguments with which this program calls [Main], less those
	// that Main takes: "supervise", for instance. The command is started
	// through them.
	Self []string
	// KeyStdin reads the key from the first line of standard input. Without it
	// the exit line is not signed.
	KeyStdin bool
	// Runner is set for a command that signs an exit line of its own: it gets
	// the key as the first line of its input.
	Runner bool
	// FailCode replaces the command's own exit code when that is not 0. A
	// command that was ended by a signal or never started keeps its code. 0
	// replaces nothing.
	FailCode int
	// Deadline ends a command that runs for longer. 0 lets it run.
	Deadline time.Duration
	// ExitFile is a file that takes the exit line as well. Empty writes none.
	ExitFile string
	// AliveFD is an open descriptor, above 2, that reads end of file once
	// whoever started the supervisor is gone; the command is then killed. 0
	// watches none.
	AliveFD int
	// SharedCgroup is set where the cgroup is not the run's alone: its numbers
	// say nothing of the run, and none are reported.
	SharedCgroup bool
}

// An ending is how the command came to its end.
type ending struct {
	code    int
	sigkill bool // ended by a SIGKILL that this supervisor did not send
}

// Run supervises the command to its end, writes the exit line and returns the
// code that the process should exit with. It changes the whole process, which
// should do nothing else and exit when Run returns.
func (c Config) Run() int {
	protect()
	startThreads(spareThreads)
	events := listen()
	var key exit.Key
	var err error
	end := ending{code: codeFailed}
	if c.KeyStdin {
		key, err = readKey(0, keyTime)
	}
	if err == nil {
		end, err = c.supervise(key, events)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: %v\n", err)
	}
	c.report(end, key)
	return end.code
}

// supervise starts the command, waits for its end and kills what is left.
func (c Config) supervise(key exit.Key, events events) (ending, error) {
	var alive <-chan struct{}
	if c.AliveFD > 0 {
		if readsEnd(c.AliveFD) {
			// Another worker may have the job by now.
			return ending{code: codeFailed}, errors.New("start the command: whoever asked for it is gone")
		}
		alive = watchAlive(c.AliveFD)
	}
	cmd, err := c.start(key)
	if err != nil {
		var failed startError
		if errors.As(err, &failed) {
			return ending{code: failed.code}, err
		}
		return ending{code: codeFailed}, err
	}
	ended := c.wait(cmd, events, alive)
	if !cmd.killRest(events.child) {
		err = errors.New("end the command: some of its processes do not end")
	}
	if !ended {
		return ending{code: codeKilled}, err
	}
	return c.ending(cmd.status), err
}

// wait forwards signals until the command has ended by itself. It returns false
// when the command has to be killed.
func (c Config) wait(cmd *command, events events, alive <-chan struct{}) bool {
	var deadline <-chan time.Time
	if c.Deadline > 0 {
		deadline = time.After(c.Deadline)
	}
	for {
		// Reaping and signalling are done by this one loop, so that a signal
		// never goes to a number that is already another process's.
		cmd.reap()
		if cmd.ended {
			return true
		}
		select {
		case <-events.child:
		case sig := <-events.forward:
			// It fails only for a command that has ended meanwhile.
			_ = syscall.Kill(cmd.pid, sig.(syscall.Signal))
		case <-deadline:
			return false
		case <-alive:
			return false
		}
	}
}

// ending reads the wait status of a command that nobody here killed.
func (c Config) ending(status syscall.WaitStatus) ending {
	if status.Signaled() {
		sig := status.Signal()
		return ending{code: 128 + int(sig), sigkill: sig == syscall.SIGKILL}
	}
	code := status.ExitStatus()
	if code != 0 && c.FailCode != 0 {
		code = c.FailCode
	}
	return ending{code: code}
}

// events are the signals that the supervisor gets.
type events struct {
	child   <-chan os.Signal // a child has ended, or several
	forward <-chan os.Signal // for the command
}

// listen takes every signal that can be taken, from before the command starts:
// one that comes early is forwarded late, but not lost.
func listen() events {
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	// Taken, an attempt to write to a pipe that nobody reads is an error and
	// not the end; ignored, it would be ignored in the command as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	forward := make(chan os.Signal, 64)
	signal.Notify(forward, forwarded...)
	return events{child, forward}
}

// forwarded are the signals that reach the command: all that the kernel lets a
// process take, less those that speak of the process that gets them.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM,
	syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	syscall.SIGIO, syscall.SIGWINCH,
}

// readsEnd reports whether fd, to which nobody writes, reads end of file.
func readsEnd(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// watchAlive closes the channel once fd reads end of file. The command does not
// inherit fd.
func watchAlive(fd int) <-chan struct{} {
	syscall.CloseOnExec(fd)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var b [1]byte
		for {
			n, err := syscall.Read(fd, b[:])
			if n <= 0 && err != syscall.EINTR {
				return
			}
		}
	}()
	return gone
}
