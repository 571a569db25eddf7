package container

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

// The causes a run's context is ended with. A Result carries the one that ended
// its run, read with context.Cause; any other cause is an abort by the worker.
var (
	ErrCancelled = errors.New("cancelled")
	ErrTimeout   = errors.New("time limit reached")
	ErrShutdown  = errors.New("worker is stopping")
)

// Errors that a caller acts on. Each stands at the end of a chain that names
// what was attempted.
var (
	// ErrSpec says that no run may have what the Spec asks for, or can be
	// given it: nothing was started, and another try ends the same way.
	ErrSpec = errors.New("spec is refused")
	// ErrImageMissing says that the image is not on this host. Images are
	// never pulled.
	ErrImageMissing = errors.New("image is not on this host")
	// ErrUnavailable says that the runtime does not answer: nothing was
	// started, nothing was spent.
	ErrUnavailable = errors.New("container runtime does not answer")
	// ErrUnknown says that the runtime knows no container of that name.
	ErrUnknown = errors.New("no such container")
)

// IO is what goes into a run and what comes out of it.
type IO struct {
	// Key is delivered as the first line of stdin. The zero Key delivers
	// none, and the run's line is then read unsigned.
	Key exit.Key
	// Stdin is the job's input, sent after the key, at most 64 MiB. It is read
	// to its end before the run starts. Nil sends none.
	Stdin io.Reader
	// Log takes the raw output, stdout and stderr as they come: a client hands
	// them over by two ways, and one may overtake the other. A write error
	// never ends a run. Defaults to nothing.
	Log io.Writer
	// Parser reads the exit line; its zero value has the default vocabulary.
	Parser exit.Parser
}

// A Result says how a run ended.
type Result struct {
	// Name is the container's name, by which Stop and Inspect know it.
	Name string
	// Code is the container's real exit code, 0..255: 137 for an aborted run,
	// -1 for one that has none because it never started or is detached.
	Code int
	// Aborted is true when the run was stopped because its context ended;
	// Cause then says why (context.Cause).
	Aborted bool
	Cause   error
	// NeverStarted is true when no process of the job ever ran: nothing was
	// spent.
	NeverStarted bool
	// Detached is true when the run did start and its end is not known: it may
	// still run.
	Detached bool
	// Orphan is true when a stop did not take and the container may still run.
	// Call Stop with Name until it succeeds.
	Orphan bool
	// MemoryLimit is the memory bound that was on the command line, in bytes.
	MemoryLimit jobsize.Limit
	// Line is the decisive exit line, nil when there is none or, with a key
	// issued, none that verifies.
	Line *exit.Line
	Auth exit.Auth
	// SecondChannel is true when Line came through the file beside the
	// output.
	SecondChannel bool
	// Started and Ended are the run's instants, zero when it never started or
	// its end is not known.
	Started, Ended time.Time
	// TailCut is true when the output was longer than the tail that the exit
	// line is read from.
	TailCut bool
}

// Labels are what a container says of its owner. An empty field of a filter
// matches everything.
type Labels struct {
	Instance string // the worker process that started it
	Host     string
	Job      string
	Attempt  string
}

// A State is what a runtime knows of one container.
type State struct {
	Name    string
	ID      string
	Labels  Labels
	Started time.Time // zero: never started
	Ended   time.Time
	Running bool
	Code    int
	OOM     bool // the runtime's own flag, which may also be a child's kill
	PID     int  // the first process, 0 when it does not run
}

// An Image is what a runtime knows of one image.
type Image struct {
	ID           string
	Capabilities []string // the comma list of the label dispatch.capabilities
}

// Runtime is what each runtime of this package offers. It is declared here only
// to hold them to one shape; consumers declare the few methods they need.
type runtime interface {
	// Facts returns what this runtime says of its host, cached.
	Facts(ctx context.Context) (Facts, error)
	// Image looks an image up by reference or id. It returns ErrImageMissing.
	Image(ctx context.Context, ref string) (Image, error)
	// Run runs one job to its end. The error says that nothing was started
	// (ErrSpec, ErrImageMissing, ErrUnavailable); everything else is in the Result. When ctx
	// ends, Run stops the container and then returns.
	Run(ctx context.Context, spec Spec, io IO) (Result, error)
	// Stop stops and removes a container; one that is gone is no error.
	Stop(ctx context.Context, name string) error
	// List returns the containers whose labels match every field of the filter.
	List(ctx context.Context, filter Labels) ([]State, error)
	// Inspect returns the state of one container. It returns ErrUnknown.
	Inspect(ctx context.Context, name string) (State, error)
}

// A Facts is what a runtime says of its host.
type Facts struct {
	Runtime  string        // docker, podman or process
	Version  string        // of the runtime
	CPUs     jobsize.Limit // whole CPUs
	Memory   jobsize.Limit // bytes
	Cgroup   string        // v1, v2 or hybrid; "" when unknown
	Driver   string        // cgroupfs or systemd; "" when unknown
	Rootless bool
	// Unenforced names the size flags that the runtime accepts and drops.
	Unenforced []string
	// Isolated is false for a runtime that gives a job no walls.
	Isolated bool
}
