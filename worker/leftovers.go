package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edgehero/dispatch/container"
)

const (
	// leftoverTime bounds step 0: stopping what an earlier pickup left running
	// and waiting until it is gone.
	leftoverTime = time.Minute
	// leftoverPoll is how often the runtime is asked meanwhile.
	leftoverPoll = 200 * time.Millisecond
	// orphanPoll is how often an orphan is stopped again and asked for.
	orphanPoll = 10 * time.Second
)

// stopAll stops the containers that the filter matches, or the one of that name
// among them, and waits until the runtime knows none of them any more.
func (w *Worker) stopAll(ctx context.Context, filter container.Labels, name string) error {
	ctx, cancel := context.WithTimeout(ctx, leftoverTime)
	defer cancel()
	for pause := time.Duration(0); ; pause = leftoverPoll {
		states, err := w.config.Runtime.List(ctx, filter)
		if err != nil {
			return fmt.Errorf("list what is left of the job: %w", err)
		}
		states = slices.DeleteFunc(states, func(s container.State) bool { return name != "" && s.Name != name })
		if len(states) == 0 {
			return nil
		}
		var errs []error
		for _, s := range states {
			errs = append(errs, w.config.Runtime.Stop(ctx, s.Name))
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("stop what is left of the job: %d containers are still there: %w", len(states), errors.Join(append(errs, context.Cause(ctx))...))
		}
	}
}

// An orphan is a container whose stop did not take.
type orphan struct {
	labels container.Labels
	name   string // a later run of the same attempt has another one
}

// watch keeps asking for an orphan until the runtime says that it is gone. Then
// it gives back what the orphan held and forgets it. It gives up when the worker
// stops, after one more try.
func (w *Worker) watch(ph phases, o *orphan, release func()) {
	for {
		err := w.stopAll(ph.settling, o.labels, o.name)
		if err == nil {
			w.log.Info("orphan_gone", "job", o.labels.Job, "attempt", o.labels.Attempt)
			w.mu.Lock()
			delete(w.orphans, o)
			w.mu.Unlock()
			release()
			return
		}
		w.log.Warn("orphan_stays", "job", o.labels.Job, "attempt", o.labels.Attempt, "error", err)
		if !sleep(ph.running, orphanPoll) {
			return
		}
	}
}

// startWatch gives the share of an orphan to a watch of its own, which the
// worker waits for.
func (w *Worker) startWatch(ph phases, o *orphan, release func()) {
	w.mu.Lock()
	w.orphans[o] = struct{}{}
	w.mu.Unlock()
	w.work.Go(func() { w.watch(ph, o, release) })
}
