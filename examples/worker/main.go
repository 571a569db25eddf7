// Command worker is the reference worker of dispatch: it runs jobs from a queue,
// each in a container of its own size, and shows what they came to. It composes
// the packages of the module and holds no rule of its own about formats.
//
//	worker run examples/jobs/count.json
//	worker help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/edgehero/dispatch/container/supervisor"
)

// The exit codes of every command. They are part of its interface.
const (
	exitOK          = 0 // done; of run: the job completed
	exitFailed      = 1 // of run: the job failed after its last attempt; else the command did
	exitUsage       = 2 // bad flag, argument or input: nothing was started
	exitPolicy      = 3 // of run: the job was refused, cancelled, or ran and failed by its own word
	exitUnavailable = 4 // a part that is needed does not answer: Docker, Redis, a folder
)

// A failure is an error that knows its exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

func unavailablef(format string, args ...any) error {
	return &failure{exitUnavailable, fmt.Errorf(format, args...)}
}

// A command is one subcommand. Its run gets the arguments behind its name.
type command struct {
	name    string
	args    string // what stands behind the flags in the usage line
	summary string
	note    string // what else help says, "" for nothing
	example string
	run     func(ctx context.Context, p *program, args []string) error
}

// commands lists the subcommands in the order help shows them.
func commands() []command {
	return []command{
		runCommand,
		serveCommand,
		enqueueCommand,
		cancelCommand,
		liveCommand,
		runsCommand,
		reportCommand,
		explainCommand,
		sizeCommand,
		probeCommand,
	}
}

// A program is what a command sees of the process it runs in.
type program struct {
	command command
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	getenv  func(string) string
	// stopNow is closed at the second signal; the first ends the context.
	stopNow chan struct{}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		// The half that runs inside, of a job without an image or of an image
		// without a supervisor.
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(mainCode(os.Args[1:]))
}

func mainCode(args []string) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, stopNow: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with the process
		<-signals
		stop()
		<-signals
		close(p.stopNow)
	}()
	return p.main(ctx, args)
}

func (p *program) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		p.help(p.stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return p.helpCommand(args[1:])
	}
	for _, c := range commands() {
		if c.name == args[0] {
			p.command = c
			return p.exitCode(c.run(ctx, p, args[1:]))
		}
	}
	return p.exitCode(usagef("no such command %.64q; worker help lists them", args[0]))
}

// exitCode reports an error in one line and turns it into an exit code.
func (p *program) exitCode(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	fmt.Fprintf(p.stderr, "%s: %v\n", strings.TrimSpace("worker "+p.command.name), err)
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return exitFailed
}

func (p *program) help(w io.Writer) {
	fmt.Fprint(w, "usage: worker COMMAND [FLAG]... [ARGUMENT]...\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nworker help COMMAND shows its flags and examples. Each flag can also be given as an\n"+
		"environment variable: -data is DISPATCH_DATA, -allow-process is DISPATCH_ALLOW_PROCESS.\n"+
		"\nExit codes: 0 done, 1 failed, 2 a bad flag, argument or input, 3 the job ended as policy,\n"+
		"4 something that is needed does not answer: Docker, Redis, a folder.\n")
}

func (p *program) helpCommand(args []string) int {
	if len(args) == 0 {
		p.help(p.stdout)
		return exitOK
	}
	return p.main(context.Background(), []string{args[0], "-h"})
}
