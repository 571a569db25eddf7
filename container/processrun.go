package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

// defaultPath is the PATH of a job that brings none, as in an image that has
// none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// processKillTime bounds the wait for a supervisor that was told to end
	// all, and the wait for a cgroup that was killed. A supervisor gives itself
	// half of it.
	processKillTime = 10 * time.Second
	// processPipeTime bounds the wait for output that something still holds
	// when the supervisor has ended.
	processPipeTime = 2 * time.Second
)

// A processRun is one run of a Process.
type processRun struct {
	*Process
	spec   Spec
	in     IO
	out    *output
	cmd    *exec.Cmd
	leaf   *cgroup.Leaf // nil: without bounds
	alive  *os.File     // the supervisor ends all once this is closed
	result Result

	ended chan struct{} // closed when the supervisor has ended
	gone  chan struct{} // closed when nothing is left, or left says why
	left  error
}

// start starts the supervisor of the job, in the job's leaf. An error says that
// nothing was started, and nothing is left.
func (run *processRun) start() (err error) {
	if err := run.command(); err != nil {
		return err
	}
	// Held from here on, so that no two runs have one name.
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.runs[run.spec.Name] != nil {
		return fmt.Errorf("name %.100q is taken by a job that runs", run.spec.Name)
	}
	if err := run.enterLeaf(); err != nil {
		return err
	}
	if err := run.begin(); err != nil {
		return errors.Join(err, run.removeLeaf())
	}
	run.runs[run.spec.Name] = run
	return nil
}

// command makes the command line of the job's supervisor.
func (run *processRun) command() error {
	spec := run.spec
	if err := checkForProcess(spec); err != nil {
		return fmt.Errorf("check the spec: %w: %w", ErrSpec, err)
	}
	user, err := credential(spec)
	if err != nil {
		return fmt.Errorf("check the spec: %w: %w", ErrSpec, err)
	}
	spec.Supervisor = append(slices.Clone(spec.Supervisor), "--alive-fd=3")
	if run.parent == nil {
		spec.Supervisor = append(spec.Supervisor, "--shared-cgroup")
	}
	args := append(spec.supervisorArgs(!run.in.Key.IsZero(), ""), spec.Args...)
	cmd := exec.Command(spec.Supervisor[0], args...)
	cmd.Env = processEnv(spec.Env)
	cmd.Dir = "/"
	if spec.Workdir != "" {
		cmd.Dir = spec.Workdir
	}
	if cmd.Stdin, err = run.in.stdin(); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = run.out, run.out
	cmd.WaitDelay = processPipeTime
	// In a session of its own: a Ctrl-C for the worker does not reach the job,
	// and the job does not reach the worker's terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: user}
	run.cmd = cmd
	return nil
}

// enterLeaf makes the leaf for the process to start in.
func (run *processRun) enterLeaf() error {
	if run.parent == nil {
		run.config.Log.Warn("size_bound_unenforced", "job", run.spec.Job, "flags", sizeFlags)
		return nil
	}
	leaf, err := run.parent.Create(run.spec.Instance, run.spec.Name, cgroup.Limits{
		Size:   run.spec.Size,
		Shares: run.spec.Shares,
		CPUs:   run.spec.CPUs,
		PIDs:   run.spec.pids(),
	})
	if err != nil {
		return err
	}
	run.leaf = leaf
	run.result.MemoryLimit = jobsize.Known(run.spec.Size.Mem.Bytes())
	startInLeaf(run.cmd.SysProcAttr, leaf)
	return nil
}

// begin starts the process, with one end of a pipe that tells it when this
// program is gone.
func (run *processRun) begin() error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the supervisor: %w: %w", ErrUnavailable, err)
	}
	defer read.Close()
	run.cmd.ExtraFiles = []*os.File{read}
	if err := run.cmd.Start(); err != nil {
		kind := ErrUnavailable
		if errors.Is(err, fs.ErrPermission) { // of the spec's folder
			kind = ErrSpec
		}
		return errors.Join(startError("the supervisor", kind, err), write.Close())
	}
	run.alive = write
	run.result.Started = time.Now()
	return nil
}

// follow waits for the end of the supervisor, and brings it about when ctx ends.
func (run *processRun) follow(ctx context.Context) {
	stopped := make(chan struct{})
	var aborted bool
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		aborted = run.terminate()
	})
	// What Wait says of pipes is no failure of the job: a command need not read
	// its input, and a process that is out of reach can hold the output.
	_ = run.cmd.Wait()
	close(run.ended)
	run.alive.Close()
	if !unwatch() {
		<-stopped
	}
	run.result.Ended = time.Now()
	run.result.Code = run.code()
	if aborted {
		run.result.Aborted, run.result.Cause, run.result.Code = true, context.Cause(ctx), codeAborted
	}
}

func (run *processRun) code() int {
	status, _ := run.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// terminate ends a run: a request, a grace, and then no choice. It returns once
// the supervisor has ended, false when that was before the request.
func (run *processRun) terminate() bool {
	// The supervisor hands the signal on.
	if err := run.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		<-run.ended
		return false
	}
	if run.endsWithin(run.config.Grace) {
		return true
	}
	run.alive.Close() // the supervisor kills everything below it, and ends
	if run.endsWithin(processKillTime) {
		return true
	}
	if run.leaf != nil {
		ctx, cancel := context.WithTimeout(context.Background(), processKillTime)
		defer cancel()
		_ = run.leaf.Kill(ctx) // done again by clear, which reports it
	}
	_ = run.cmd.Process.Kill()
	<-run.ended
	return true
}

func (run *processRun) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-run.ended:
		return true
	case <-timer.C:
		return false
	}
}

// clear kills and removes what is left of a run.
func (run *processRun) clear() {
	run.noteMemoryKills()
	if run.left = run.removeLeaf(); run.left != nil {
		run.result.Orphan = true
		run.config.Instance.leftover.Store(true)
		run.config.Log.Warn("process_orphan", "job", run.spec.Job, "attempt", run.spec.Attempt, "container", run.spec.Name, "error", run.left)
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	delete(run.runs, run.spec.Name)
	close(run.gone)
}

func (run *processRun) removeLeaf() error {
	if run.leaf == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), processKillTime)
	defer cancel()
	return errors.Join(run.leaf.Kill(ctx), run.leaf.Remove())
}

// noteMemoryKills logs what the kernel killed for memory, which is also known
// where the supervisor did not live to say it, and whose limit may have been
// the cause.
func (run *processRun) noteMemoryKills() {
	if run.leaf == nil {
		return
	}
	events, ok := run.leaf.Events()
	if !ok || events.OOMKill == 0 {
		return
	}
	own, above := run.leaf.MemoryLimits()
	run.config.Log.Info("process_memory_kills", "job", run.spec.Job, "attempt", run.spec.Attempt,
		"kills", events.OOMKill, "own_limit_reached", events.OOM, "own_limit", own.String(), "limit_above", above.String())
}

// state is what is known of a job that runs.
func (run *processRun) state() State {
	return State{
		Name:    run.spec.Name,
		ID:      run.spec.Name,
		Labels:  run.spec.labels(),
		Started: run.result.Started,
		Running: true,
		PID:     run.cmd.Process.Pid,
	}
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
		spec.checkInPlace,
		func() error { return checkEnv(spec.Env) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkInPlace refuses a folder that the job would not find where it looks.
func (s Spec) checkInPlace() error {
	for _, m := range s.Mounts {
		if err := m.check(Dialect{}); err != nil {
			return err
		}
		if filepath.Clean(m.Source) != filepath.Clean(m.Target) {
			return fmt.Errorf("mount target %.80q is not its source: without a container a job sees a folder only where it is", m.Target)
		}
		if _, err := os.Stat(m.Source); err != nil {
			return fmt.Errorf("mount target %.80q: %w", m.Target, withoutPath(err))
		}
	}
	if s.Workdir == "" {
		return nil
	}
	if info, err := os.Stat(s.Workdir); err != nil || !info.IsDir() || !filepath.IsAbs(s.Workdir) {
		return fmt.Errorf("working directory %.80q is no folder of this host", s.Workdir)
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
