package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

// defaultPath is the PATH of a job that brings none, the one of an image that
// has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// processKillTime bounds the wait for a supervisor that was told to kill
	// all and end. It gives itself five seconds.
	processKillTime = 10 * time.Second
	// processPipeTime bounds the wait for a pipe that something still holds
	// when the supervisor has ended.
	processPipeTime = 2 * time.Second
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
	// CgroupParent is the directory of a cgroup v2 that was delegated to this
	// program: every job runs in a leaf of it, bounded by its size. Empty runs
	// jobs without bounds.
	CgroupParent string
	// Instance and Host go into the labels of a run whose Spec names none.
	Instance string
	Host     string
	// Prefix begins the name of a run whose Spec names none. Defaults to
	// "dispatch-".
	Prefix string
	// Grace is how long a job has to end after SIGTERM. Defaults to 10 s.
	Grace time.Duration
}

// A Process runs jobs as processes of this host, without a container. It gives
// no isolation: a job sees what this program's user sees, and can do what that
// user can. It is for development, for tests, and for hosts that are themselves
// the sandbox.
//
// It takes the same Spec as the other runtimes and gives the same Result. What
// a container would hold back, it does not: Network and WritableRoot have no
// effect, and TmpMiB makes no /tmp. Its differences:
//
//   - Image must be empty: a job that was meant for a container never runs
//     without one.
//   - No mount is made. A Mount is accepted when its Target is its Source, which
//     the job sees anyway; that it is read-only is not enforced.
//   - User, when set, is whom the job runs as, which only root may choose. By
//     default it is this program's user.
//   - The environment is the Spec's alone, with a PATH when the Spec brings
//     none.
//   - Workdir defaults to the root folder.
//   - CgroupParent has no effect in a Spec: the runtime has one for all jobs.
//   - Without a CgroupParent, or on a system other than Linux, there are no
//     bounds on memory, CPU time and tasks. [Facts] names them.
//
// A job does not outlive this program: its supervisor sees it go, and ends all.
type Process struct {
	config ProcessConfig
	parent *cgroup.Parent // nil: without bounds

	mu   sync.Mutex
	runs map[string]*processRun
}

var _ runtime = (*Process)(nil)

// NewProcess returns a runtime for the host's own processes. It fails when
// CgroupParent is set and can't take jobs; the error then says what is missing
// (see cgroup.OpenParent).
func NewProcess(config ProcessConfig) (*Process, error) {
	if len(config.Supervisor) > 0 && !filepath.IsAbs(config.Supervisor[0]) {
		return nil, errors.New("make a process runtime: Supervisor does not begin with an absolute path")
	}
	if config.Grace == 0 {
		config.Grace = 10 * time.Second
	}
	if config.Instance == "" {
		config.Instance = "none" // a leaf's name must say one
	}
	if config.Prefix == "" {
		config.Prefix = "dispatch-"
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
		facts.Unenforced = []string{"--memory", "--memory-swap", "--cpu-shares", "--cpus", "--pids-limit"}
	}
	return facts, nil
}

// Image knows one image, the empty one: every command here runs under a
// supervisor that signs.
func (p *Process) Image(_ context.Context, ref string) (Image, error) {
	if ref != "" {
		return Image{}, fmt.Errorf("find image %.200q: the process runtime has none: %w", ref, ErrImageMissing)
	}
	return Image{Capabilities: []string{"exitAuth"}}, nil
}

// A processRun is one job that runs.
type processRun struct {
	state State
	cmd   *exec.Cmd
	leaf  *cgroup.Leaf  // nil: without bounds
	alive *os.File      // the supervisor kills all once this is closed
	ended chan struct{} // closed when the supervisor has ended
	gone  chan struct{} // closed when what it left is gone, or left says why not
	left  error
}

// Run runs one job to its end.
func (p *Process) Run(ctx context.Context, spec Spec, io IO) (Result, error) {
	if ctx.Err() != nil {
		return Result{Code: 137, Aborted: true, Cause: context.Cause(ctx), NeverStarted: true}, nil
	}
	spec = p.withDefaults(spec)
	out := newOutput(io.Log)
	run, err := p.start(spec, io, out)
	if err != nil {
		return Result{}, fmt.Errorf("run a process: %w", err)
	}
	var result Result
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		result.Aborted = p.terminate(run)
	})
	code := run.wait()
	if !unwatch() {
		<-stopped
	}
	p.cleanUp(run)

	result.Code = code
	if result.Aborted {
		result.Code, result.Cause = 137, context.Cause(ctx)
	}
	result.Orphan = run.left != nil
	result.Started, result.Ended = run.state.Started, time.Now()
	if run.leaf != nil {
		result.MemoryLimit = jobsize.Known(spec.Size.Mem.Bytes())
	}
	out.exitLine(&result, io, "")
	return result, nil
}

func (p *Process) withDefaults(spec Spec) Spec {
	if len(spec.Supervisor) == 0 {
		spec.Supervisor = p.config.Supervisor
	}
	if spec.Name == "" {
		spec.Name = NewName(p.config.Prefix, spec.Job, spec.Attempt)
	}
	if spec.Instance == "" {
		spec.Instance = p.config.Instance
	}
	if spec.Host == "" {
		spec.Host = p.config.Host
	}
	return spec
}

// start starts the supervisor of a job, in the job's leaf.
func (p *Process) start(spec Spec, io IO, out *output) (*processRun, error) {
	cmd, err := p.command(spec, io)
	if err != nil {
		return nil, err
	}
	if cmd.Stdin, err = io.stdin(); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	run := &processRun{cmd: cmd, ended: make(chan struct{}), gone: make(chan struct{})}
	run.state = State{Name: spec.Name, ID: spec.Name, Labels: spec.labels(), Running: true}
	if p.parent != nil {
		if run.leaf, err = p.parent.Create(spec.Instance, spec.Name, limitsOf(spec)); err != nil {
			return nil, fmt.Errorf("make its cgroup: %w", err)
		}
		startInLeaf(cmd.SysProcAttr, run.leaf)
	}
	if err := run.begin(); err != nil {
		p.cleanUp(run)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[run.state.Name] = run
	return run, nil
}

// begin starts the process, with one end of a pipe that tells it when this
// program is gone.
func (run *processRun) begin() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	run.cmd.ExtraFiles = []*os.File{read}
	if err := run.cmd.Start(); err != nil {
		write.Close()
		return fmt.Errorf("start its supervisor: %w: %w", ErrUnavailable, withoutPath(err))
	}
	run.alive = write
	run.state.PID = run.cmd.Process.Pid
	run.state.Started = time.Now()
	return nil
}

// wait returns the supervisor's exit code once it has ended and its output was
// read, or can't be read any more.
func (run *processRun) wait() int {
	defer close(run.ended)
	// What Wait says of pipes is no failure of the job: a command need not read
	// its input, and a process that is out of reach can hold the output.
	_ = run.cmd.Wait()
	run.alive.Close()
	status, _ := run.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// cleanUp kills and removes what is left of a run.
func (p *Process) cleanUp(run *processRun) {
	if run.leaf != nil {
		ctx, cancel := context.WithTimeout(context.Background(), processKillTime)
		defer cancel()
		run.left = errors.Join(run.leaf.Kill(ctx), run.leaf.Remove())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, run.state.Name)
	close(run.gone)
}

// terminate ends a run: a request, a grace, and then no choice. It returns once
// that is done, false when the run had ended by itself before.
func (p *Process) terminate(run *processRun) bool {
	// The supervisor hands the signal on.
	if err := run.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return false
	}
	if run.endsWithin(p.config.Grace) {
		return true
	}
	run.alive.Close() // the supervisor kills everything below it, and ends
	if run.endsWithin(processKillTime) {
		return true
	}
	if run.leaf != nil {
		ctx, cancel := context.WithTimeout(context.Background(), processKillTime)
		defer cancel()
		_ = run.leaf.Kill(ctx)
	}
	_ = run.cmd.Process.Kill()
	<-run.ended
	return true
}

func (run *processRun) endsWithin(d time.Duration) bool {
	select {
	case <-run.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// Stop stops a job that this runtime runs and returns once it is gone. A name
// that is not known is no error.
func (p *Process) Stop(ctx context.Context, name string) error {
	p.mu.Lock()
	run := p.runs[name]
	p.mu.Unlock()
	if run == nil {
		return nil
	}
	go p.terminate(run)
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

// List returns the jobs that run.
func (p *Process) List(_ context.Context, filter Labels) ([]State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var states []State
	for _, run := range p.runs {
		if matches(run.state.Labels, filter) {
			states = append(states, run.state)
		}
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}

func matches(l, filter Labels) bool {
	match := func(have, want string) bool { return want == "" || have == want }
	return match(l.Instance, filter.Instance) && match(l.Host, filter.Host) &&
		match(l.Job, filter.Job) && match(l.Attempt, filter.Attempt)
}

// Inspect returns the state of a job that runs. It returns [ErrUnknown] for one
// that has ended: nothing is kept.
func (p *Process) Inspect(_ context.Context, name string) (State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run := p.runs[name]; run != nil {
		return run.state, nil
	}
	return State{}, fmt.Errorf("inspect process %.100q: %w", name, ErrUnknown)
}

// command returns the command line of a job's supervisor.
func (p *Process) command(spec Spec, io IO) (*exec.Cmd, error) {
	if err := checkForProcess(spec); err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{
		// A session of its own: a Ctrl-C for the worker does not reach the job,
		// and the job does not reach the worker's terminal.
		Setsid: true,
	}
	var err error
	if attr.Credential, err = credential(spec); err != nil {
		return nil, err
	}
	spec.Supervisor = append(slices.Clone(spec.Supervisor), "--alive-fd=3")
	if p.parent == nil {
		spec.Supervisor = append(spec.Supervisor, "--shared-cgroup")
	}
	args := append(spec.supervisorArgs(!io.Key.IsZero(), ""), spec.Command...)
	cmd := exec.Command(spec.Supervisor[0], args...)
	cmd.Env = processEnv(spec.Env)
	cmd.Dir = "/"
	if spec.Workdir != "" {
		cmd.Dir = spec.Workdir
	}
	cmd.WaitDelay = processPipeTime
	cmd.SysProcAttr = attr
	return cmd, nil
}

// checkForProcess refuses what no job may have, and what this one can't have
// without a container.
func checkForProcess(spec Spec) error {
	switch {
	case spec.Image != "":
		return fmt.Errorf("image %.200q needs a container: %w", spec.Image, ErrImageMissing)
	case len(spec.Supervisor) == 0:
		return errors.New("no supervisor is given, neither by the runtime nor by the spec")
	case len(spec.ExtraFlags) > 0:
		return fmt.Errorf("extra flag %.80q is a container's", spec.ExtraFlags[0])
	}
	for _, check := range []func() error{
		spec.checkNames,
		spec.checkSize,
		spec.checkUser,
		spec.checkSupervisor,
		func() error { return CheckEnv(spec.Env) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return checkInPlace(spec)
}

// checkInPlace refuses a folder that the job would not find where it looks.
func checkInPlace(spec Spec) error {
	for _, m := range spec.Mounts {
		if !filepath.IsAbs(m.Source) || filepath.Clean(m.Source) != filepath.Clean(m.Target) {
			return fmt.Errorf("mount target %.80q is not its source: without a container a job sees a folder only where it is", m.Target)
		}
		if _, err := os.Stat(m.Source); err != nil {
			return fmt.Errorf("mount target %.80q: %w", m.Target, withoutPath(err))
		}
	}
	if spec.Workdir == "" {
		return nil
	}
	if info, err := os.Stat(spec.Workdir); err != nil || !filepath.IsAbs(spec.Workdir) || !info.IsDir() {
		return fmt.Errorf("working directory %.80q is no folder of this host", spec.Workdir)
	}
	return nil
}

// credential returns whom a job runs as, nil for this program's user.
func credential(spec Spec) (*syscall.Credential, error) {
	if spec.User == "" {
		return nil, nil
	}
	var uid, gid uint32
	if _, err := fmt.Sscanf(spec.user(), "%d:%d", &uid, &gid); err != nil {
		return nil, fmt.Errorf("user %.80q is not a numeric uid or uid:gid", spec.User)
	}
	if int(uid) == os.Geteuid() && int(gid) == os.Getegid() {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("user %.80q is not who runs this program, and only root may choose", spec.User)
	}
	return &syscall.Credential{Uid: uid, Gid: gid}, nil
}

func processEnv(env map[string]string) []string {
	var list []string
	if _, ok := env["PATH"]; !ok {
		list = append(list, "PATH="+defaultPath)
	}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func limitsOf(spec Spec) cgroup.Limits {
	return cgroup.Limits{Size: spec.Size, Shares: spec.Shares, CPUs: spec.CPUs, PIDs: spec.PIDs}
}
