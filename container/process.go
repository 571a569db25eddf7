package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

// A ProcessConfig says how a [Process] runs its jobs.
type ProcessConfig struct {
	// Supervisor is a program on this host, by its absolute path, and the
	// arguments that make it a supervisor, for every Spec that names none. A
	// program that is its own supervisor names itself:
	//
	//	exe, err := os.Executable()
	//	Supervisor: []string{exe, "supervise"}
	Supervisor []string
	// Instance is the worker process that owns every run. Required where
	// CgroupParent is set, so that a Sweep finds the leaves of a dead one.
	Instance *Instance
	// CgroupParent is the directory of a cgroup v2 that was delegated to this
	// program: every job runs in a leaf of it, bounded by its size. Empty runs
	// jobs without bounds.
	CgroupParent string
	// Host is this host's name in the labels of a run whose Spec names none.
	Host string
	// Prefix begins the name of a run whose Spec names none. Defaults to
	// "dispatch-".
	Prefix string
	// Grace is how long a job has to end after SIGTERM. Defaults to 10 s.
	Grace time.Duration
	// Log takes what is worth a note. Defaults to nothing.
	Log *slog.Logger
}

// A Process runs jobs as processes of this host, without a container. It gives
// no isolation: a job sees what this program's user sees, and can do what that
// user can. It is for development, for tests, and for hosts that are themselves
// the sandbox.
//
// It takes the same Spec as the other runtimes and gives the same Result, with
// these differences:
//
//   - Image must be empty: a job that was meant for a container never runs
//     without one.
//   - No mount is made. A Mount is accepted when its Target is its Source, where
//     the job finds it anyway; that it is read-only is not enforced.
//   - User, when set, is whom the job runs as, which only root may choose. By
//     default it is this program's user, root too.
//   - The environment is the Spec's alone, with a PATH when the Spec brings
//     none, and no other variable of the host.
//   - Workdir defaults to the root folder.
//   - Network, WritableRoot and TmpMiB have no effect, nor has CgroupParent: the
//     runtime has one for all jobs.
//   - ExtraFlags must be empty.
//   - Without ProcessConfig.CgroupParent there are no bounds on memory, CPU time
//     and tasks. [Facts] names them.
//
// A job does not outlive this program: its supervisor sees it go, and ends all.
// Only where the job has ended its own supervisor, which is a process of the
// same user, may something be left; in a leaf, [Sweep] finds that too.
type Process struct {
	config ProcessConfig
	parent *cgroup.Parent // nil: without bounds

	mu   sync.Mutex
	runs map[string]*processRun // by name
}

var (
	_ runtime = (*Process)(nil)
	_ Holder  = (*Process)(nil)
)

// NewProcess returns a runtime for the host's own processes. It fails when
// CgroupParent is set and can't take jobs; the error then says what is missing
// (see [cgroup.OpenParent]).
func NewProcess(config ProcessConfig) (*Process, error) {
	switch {
	case config.CgroupParent != "" && config.Instance == nil:
		return nil, errors.New("make a process runtime: Instance is required where CgroupParent is set")
	case config.Grace < 0:
		return nil, fmt.Errorf("make a process runtime: Grace of %v is negative", config.Grace)
	}
	if config.Prefix == "" {
		config.Prefix = "dispatch-"
	}
	if config.Grace == 0 {
		config.Grace = 10 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Supervisor = slices.Clone(config.Supervisor)
	p := &Process{config: config, runs: map[string]*processRun{}}
	if config.CgroupParent != "" {
		parent, err := cgroup.OpenParent(config.CgroupParent)
		if err != nil {
			return nil, fmt.Errorf("make a process runtime: %w", err)
		}
		p.parent = parent
	}
	return p, nil
}

// Facts returns what is known of this host. It never fails.
func (p *Process) Facts(context.Context) (Facts, error) {
	facts := Facts{
		Runtime:  "process",
		CPUs:     jobsize.Known(int64(goruntime.NumCPU())),
		Memory:   hostMemory(),
		Cgroup:   string(cgroup.Self().Version),
		Rootless: os.Geteuid() != 0,
	}
	if p.parent == nil {
		facts.Unenforced = slices.Clone(sizeFlags)
	}
	return facts, nil
}

// Image knows one image, the empty one: every command here runs under a
// supervisor that signs.
func (p *Process) Image(_ context.Context, ref string) (Image, error) {
	if ref != "" {
		return Image{}, fmt.Errorf("find image %.200q: a process has none: %w", ref, ErrImageMissing)
	}
	return Image{Capabilities: []string{"exitAuth"}}, nil
}

// Run runs one job to its end. It returns ErrSpec and ErrUnavailable.
func (p *Process) Run(ctx context.Context, spec Spec, in IO) (Result, error) {
	spec = p.withDefaults(spec)
	if ctx.Err() != nil {
		return abortedBeforeStart(ctx, spec.Name), nil
	}
	run := &processRun{
		Process: p,
		spec:    spec,
		in:      in,
		out:     newOutput(in.Log),
		ended:   make(chan struct{}),
		gone:    make(chan struct{}),
		result:  Result{Name: spec.Name, MemoryLimit: jobsize.Off()},
	}
	if err := run.start(); err != nil {
		return Result{}, fmt.Errorf("run a process: %w", err)
	}
	run.follow(ctx)
	run.clear()
	run.out.exitLine(&run.result, in, "")
	return run.result, nil
}

func (p *Process) withDefaults(spec Spec) Spec {
	if len(spec.Supervisor) == 0 {
		spec.Supervisor = p.config.Supervisor
	}
	if spec.Name == "" {
		spec.Name = NewName(p.config.Prefix, spec.Job, spec.Attempt)
	}
	if spec.Instance == "" && p.config.Instance != nil {
		spec.Instance = p.config.Instance.ID()
	}
	if spec.Host == "" {
		spec.Host = p.config.Host
	}
	return spec
}

// Stop stops a job that this runtime runs and returns once it is gone. A name
// that is not known is no error: nothing is kept of a job that has ended.
func (p *Process) Stop(ctx context.Context, name string) error {
	run := p.find(name)
	if run == nil {
		return nil
	}
	go run.terminate()
	select {
	case <-run.gone:
	case <-ctx.Done():
		return fmt.Errorf("stop process %.100q: %w", name, context.Cause(ctx))
	}
	if run.left != nil {
		return fmt.Errorf("stop process %.100q: %w", name, run.left)
	}
	return nil
}

// List returns the jobs that run, by name.
func (p *Process) List(_ context.Context, filter Labels) ([]State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var states []State
	for _, run := range p.runs {
		if filter.match(run.spec.labels()) {
			states = append(states, run.state())
		}
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}

// Inspect returns the state of a job that runs. It returns [ErrUnknown] for one
// that has ended.
func (p *Process) Inspect(_ context.Context, name string) (State, error) {
	run := p.find(name)
	if run == nil {
		return State{}, fmt.Errorf("inspect process %.100q: %w", name, ErrUnknown)
	}
	return run.state(), nil
}

func (p *Process) find(name string) *processRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[name]
}

const kindCgroup = "cgroup"

// Leftovers lists the leaf cgroups of an instance. It implements [Holder].
func (p *Process) Leftovers(_ context.Context, instance string) ([]Leftover, error) {
	if p.parent == nil {
		return nil, nil
	}
	names, err := p.parent.Leaves(instance)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	var all []Leftover
	for _, name := range names {
		all = append(all, Leftover{Instance: instance, Kind: kindCgroup, Name: name})
	}
	return all, nil
}

// Remove kills and removes a leaf cgroup of an instance that is dead, and the
// others of that instance with it. It implements [Holder].
func (p *Process) Remove(ctx context.Context, l Leftover) error {
	if p.parent == nil {
		return nil
	}
	removed, err := p.parent.Sweep(ctx, l.Instance)
	if err != nil && !slices.Contains(removed, l.Name) {
		return fmt.Errorf("remove what an instance left: %w", err)
	}
	return nil
}
