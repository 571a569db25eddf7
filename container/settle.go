package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/edgehero/dispatch/jobsize"
)

// settle asks the runtime how the run ended, and removes the container. The
// client's own exit code decides nothing: it is 125 when the client lost the
// daemon, and 127 for a missing command and for a job's own exit 127 alike.
func (r *clientRun) settle(ctx context.Context) error {
	id, state, err := r.ask(ctx)
	switch {
	case err != nil && !errors.Is(err, errGone):
		if !r.spent(id) {
			r.config.Instance.leftover.Store(true)
			return fmt.Errorf("ask %s how the run ended: is it running? %w: %w", r.kind.name, ErrUnavailable, err)
		}
		r.unanswered(err)
	case err != nil && r.spent(id):
		r.result.Detached = true
		r.note("container_vanished")
	case err != nil:
		r.neverStarted()
	case state.Running:
		r.stillRunning(ctx, id)
	case state.Started.IsZero() && !r.stdout.saw.Load():
		r.neverStarted()
	default:
		r.ended(state)
	}
	if r.result.Aborted {
		r.result.Code = codeAborted
	}
	if err == nil && !r.result.Orphan {
		r.removeContainer(ctx, id)
	}
	if r.result.NeverStarted && !r.result.Aborted {
		return r.imageThere(ctx)
	}
	return nil
}

// ask asks how the run ended; for a while when the daemon is silent and
// something was started, as it may be starting again. It returns errGone when
// the runtime knows no container of this run.
func (r *clientRun) ask(ctx context.Context) (string, found, error) {
	ctx, cancel := context.WithTimeout(ctx, r.bounds.ask)
	defer cancel()
	for {
		id, err := r.containerID(ctx)
		if err == nil && id == "" {
			return "", found{}, errGone
		}
		var f found
		if err == nil {
			f, err = r.byID(ctx, id)
		}
		if err == nil || errors.Is(err, errGone) || ctx.Err() != nil || !r.spent(id) {
			return id, f, err
		}
		pause(ctx, r.bounds.again)
	}
}

// spent reports whether something of the job may have run. The client writes
// the container's id before it asks for the start: without one nothing was.
func (r *clientRun) spent(id string) bool { return id != "" || r.stdout.saw.Load() }

// unanswered is the end of a run that did start and that the runtime can't be
// asked about.
func (r *clientRun) unanswered(cause error) {
	r.result.Detached, r.result.Orphan = true, true
	r.config.Instance.leftover.Store(true)
	r.note("container_unanswered", "error", cause)
}

// stillRunning is the end of a run whose client lost it, or whose stop did not
// take yet.
func (r *clientRun) stillRunning(ctx context.Context, id string) {
	r.result.Detached = !r.result.Aborted
	err := r.stop(ctx, id)
	if err != nil {
		r.result.Orphan = true
		r.config.Instance.leftover.Store(true)
		r.note("container_orphan", "error", err)
		return
	}
	if f, err := r.byID(ctx, id); err == nil {
		r.result.Started, r.result.Ended = f.Started, f.Ended
	}
}

func (r *clientRun) ended(f found) {
	if f.Started.IsZero() {
		// It wrote, so it ran: the daemon lost the fact.
		r.result.Detached = true
		return
	}
	if f.Code < 0 || f.Code > 255 {
		// Podman says -1 when it has lost who watched the container.
		r.result.Started, r.result.Detached = f.Started, true
		r.note("container_code_unknown", "code", f.Code)
		return
	}
	r.result.Started, r.result.Ended, r.result.Code = f.Started, f.Ended, f.Code
	if f.Ended.Before(f.Started) {
		// Docker notes the start of a short run once it has seen its end.
		r.result.Started = f.Ended
	}
	if r.code != f.Code && !r.result.Aborted {
		// Podman 3.3.1 ends with 0 where its container ended with 125.
		r.note("client_code_differs", "client_code", r.code, "code", f.Code)
	}
	if f.OOM {
		// Also set for a child's kill in a job that went on: a fact of its
		// own, which decides nothing.
		r.note("container_oom_flag", "code", f.Code)
	}
}

func (r *clientRun) neverStarted() {
	r.result.NeverStarted = true
	available, refused := jobsize.RefusedCPUs(r.refusal.kept)
	if !refused {
		return
	}
	ceiling, _ := r.spec.CPUs.Value()
	r.dropFacts()
	r.note("cpu_ceiling_stale", "asked", jobsize.Centi(ceiling).String(), "available", available)
}

// imageThere returns ErrImageMissing for a run that never started because its
// image is not there.
func (r *clientRun) imageThere(ctx context.Context) error {
	r.mu.Lock()
	delete(r.images, r.spec.Image)
	r.mu.Unlock()
	if _, err := r.Image(ctx, r.spec.Image); errors.Is(err, ErrImageMissing) {
		return err
	}
	return nil
}

func (r *clientRun) removeContainer(ctx context.Context, id string) {
	if err := r.remove(ctx, id); err != nil {
		r.config.Instance.leftover.Store(true)
		r.note("container_not_removed", "error", err)
	}
}

// endNetwork removes the run's own network. An orphan is still on it: it goes
// with the orphan.
func (r *clientRun) endNetwork(ctx context.Context) {
	if r.result.Orphan {
		return
	}
	if err := r.removeNetwork(context.WithoutCancel(ctx), r.spec.Name); err != nil {
		r.config.Instance.leftover.Store(true)
		r.note("network_not_removed", "error", err)
	}
}

func (r *clientRun) removeFiles() {
	if err := r.files.remove(); err != nil {
		r.note("run_files_not_removed", "error", err)
	}
}

// note logs an event of this run.
func (r *clientRun) note(event string, args ...any) {
	args = append([]any{"job", r.spec.Job, "attempt", r.spec.Attempt, "container", r.spec.Name}, args...)
	r.config.Log.Warn(event, args...)
}
