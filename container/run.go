package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/jobsize"
)

// noCode is the code of a run that has none.
const noCode = -1

// codeAborted is the code of a run that was stopped.
const codeAborted = 137

// A clientRun is one run through a runtime's client.
type clientRun struct {
	*client
	spec    Spec
	in      IO
	nonce   string
	files   runFiles
	command Command
	stdin   io.Reader
	out     *output
	stdout  witness // into out: only the job writes there
	stderr  *stream // of out: the client writes there, too
	refusal head    // the beginning of stderr
	code    int     // the client's own exit code
	result  Result
}

// Run runs one job to its end. It returns ErrSpec, ErrImageMissing and
// ErrUnavailable.
func (c *client) Run(ctx context.Context, spec Spec, in IO) (Result, error) {
	spec = c.withDefaults(spec)
	if ctx.Err() != nil {
		return abortedBeforeStart(ctx, spec.Name), nil
	}
	r := &clientRun{client: c, spec: spec, in: in, nonce: nonce(), out: newOutput(in.Log)}
	r.stderr = r.out.stream()
	r.stdout.to = r.out.stream()
	err := r.run(ctx)
	if err == nil {
		return r.result, nil
	}
	if ctx.Err() != nil {
		return abortedBeforeStart(ctx, spec.Name), nil
	}
	return Result{}, fmt.Errorf("run a container: %w", err)
}

func abortedBeforeStart(ctx context.Context, name string) Result {
	return Result{Name: name, Code: codeAborted, Aborted: true, Cause: context.Cause(ctx), NeverStarted: true}
}

func (c *client) withDefaults(spec Spec) Spec {
	if spec.Name == "" {
		spec.Name = NewName(c.config.Prefix, spec.Job, spec.Attempt)
	}
	if spec.Instance == "" {
		spec.Instance = c.config.Instance.ID()
	}
	if spec.Host == "" {
		spec.Host = c.config.Host
	}
	return spec
}

// run is the run from top to bottom. An error says that nothing was started.
func (r *clientRun) run(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer r.removeFiles()
	if r.spec.Network == NetworkPrivate {
		if err := r.createNetwork(ctx, r.spec.Name, r.spec.labels()); err != nil {
			return err
		}
		defer r.endNetwork(ctx)
	}
	if err := r.runClient(ctx); err != nil {
		return err
	}
	// From here on the end of ctx changes nothing: what ran is asked for and
	// cleared away.
	ctx = context.WithoutCancel(ctx)
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.out.exitLine(&r.result, r.in, r.files.exit)
	return nil
}

// prepare makes everything that a start needs.
func (r *clientRun) prepare(ctx context.Context) error {
	facts, err := r.Facts(ctx)
	if err != nil {
		return err
	}
	if r.stdin, err = r.in.stdin(); err != nil {
		return err
	}
	if len(r.spec.Supervisor) > 0 {
		if err := checkStatic(r.spec.Supervisor[0]); err != nil {
			return err
		}
	}
	env, err := envFile(r.spec.Env, facts.Dialect())
	if err != nil {
		return err
	}
	key := !r.in.Key.IsZero()
	// Built once without its files: a Spec that is refused makes none.
	if _, err := r.spec.Command(facts.Dialect()); err != nil {
		return err
	}
	if r.files, err = r.config.Instance.newRunFiles(r.nonce, env, key); err != nil {
		return err
	}
	r.command, err = r.spec.commandLine(facts.Dialect(), launch{r.nonce, r.files, key, r.stdin != nil})
	if err != nil {
		r.removeFiles()
		return err
	}
	r.result = Result{Name: r.spec.Name, Code: noCode, MemoryLimit: jobsize.Off()}
	if bytes, ok := r.command.MemoryLimit(); ok {
		r.result.MemoryLimit = jobsize.Known(bytes)
	}
	if len(facts.Unenforced) > 0 {
		r.config.Log.Warn("size_bound_unenforced", "job", r.spec.Job, "flags", facts.Unenforced)
	}
	return nil
}

// runClient runs the client until it has ended. When ctx ends it stops the
// container, and notes that in the result.
func (r *clientRun) runClient(ctx context.Context) error {
	cmd := r.client.command(r.command.Argv()...)
	cmd.Stdin = r.stdin
	cmd.Stdout = &r.stdout
	cmd.Stderr = io.MultiWriter(&r.refusal, r.stderr)
	if err := cmd.Start(); err != nil {
		return startError(r.kind.name, ErrUnavailable, err)
	}
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() {
		defer end()
		// How the client ended says nothing for certain; the runtime is asked.
		_ = cmd.Wait()
		r.code = cmd.ProcessState.ExitCode()
	})
	others.Go(func() { r.dropEnvFile(ended) })
	select {
	case <-ended.Done():
	case <-ctx.Done():
		r.result.Aborted, r.result.Cause = true, context.Cause(ctx)
		r.stopClient(ended, cmd)
	}
	return nil
}

// startError returns the error of a program that did not start: of a kind, but
// arguments longer than the kernel takes are always the spec's.
func startError(program string, kind, err error) error {
	if errors.Is(err, syscall.E2BIG) {
		kind = ErrSpec
	}
	return fmt.Errorf("start %s: %w: %w", program, kind, withoutPath(err))
}

// dropEnvFile removes the file of the job's environment as soon as the container
// exists, which the client says by writing its id. Once the client has ended,
// the file goes with the run's other ones.
func (r *clientRun) dropEnvFile(ended context.Context) {
	if r.files.env == "" {
		return
	}
	for r.files.containerID() == "" {
		if ended.Err() != nil {
			return
		}
		pause(ended, 10*time.Millisecond)
	}
	_ = os.Remove(r.files.env)
}

// stopClient stops the container until the client has ended. The container may
// only be in the making: the stop is repeated until there is one.
func (r *clientRun) stopClient(ended context.Context, cmd *exec.Cmd) {
	ctx, cancel := context.WithTimeout(ended, r.config.Grace+r.bounds.kill)
	defer cancel()
	for ctx.Err() == nil {
		if id, err := r.containerID(ctx); err == nil && id != "" {
			_ = r.stop(ctx, id)
		}
		pause(ctx, r.bounds.again)
	}
	if ended.Err() != nil {
		return
	}
	// The client hangs, on a daemon that does, which may yet make the
	// container that it was asked for.
	r.config.Instance.leftover.Store(true)
	killGroup(cmd)
	<-ended.Done()
}

// containerID returns the id of this run's container, "" when there is none. It
// goes by the label that no other container has, never by the name alone.
func (r *clientRun) containerID(ctx context.Context) (string, error) {
	if id := r.files.containerID(); id != "" {
		return id, nil
	}
	ids, err := r.ids(ctx, "label="+labelRun+"="+r.nonce)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}
