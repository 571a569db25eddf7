package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edgehero/dispatch/container"
)

const (
	// queuePause is the wait after a queue's error; it doubles up to
	// queuePauseMax.
	queuePause    = time.Second
	queuePauseMax = 30 * time.Second
	// leaveTime is how long Run waits for what was told to give up.
	leaveTime = 2 * hookGrace
)

// ErrStarted is returned by the second Run of a worker.
var ErrStarted = errors.New("the worker was started before; make a new one")

// A LeftError says what a worker could not wait for when it stopped.
type LeftError struct {
	Jobs    []string // ids of jobs that are not settled; their queue hands them out again
	Orphans []string // ids of jobs whose container may still run
	Hooks   []string // names of hooks that have not returned
}

// Error implements error.
func (e *LeftError) Error() string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"jobs", e.Jobs}, {"orphans", e.Orphans}, {"hooks", e.Hooks}} {
		if len(part.names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%.200q)", len(part.names), part.what, part.names))
		}
	}
	return "stop worker: left behind: " + strings.Join(parts, ", ")
}

// phases are the contexts of a worker that stops, each ended after the one
// before it.
type phases struct {
	taking   context.Context // ended by the first signal: no more jobs, none is started
	running  context.Context // then by the end of the drain time: runs are stopped
	settling context.Context // last: nothing more is written or settled
}

// Run takes jobs and runs them until ctx ends. Then it takes no more, gives back
// those that have not started, lets the running ones go on for the drain time
// and stops them, writes their records and settles them. It returns nil when
// nothing that it started is left, else a *LeftError. A worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return ErrStarted
	}
	base := context.WithoutCancel(ctx)
	running, stopRuns := context.WithCancelCause(base)
	settling, giveUp := context.WithCancel(base)
	defer giveUp()
	defer stopRuns(nil)
	ph := phases{taking: ctx, running: running, settling: settling}
	w.log.Info("worker_started", "host", w.config.Host, "slots", w.config.Slots)
	w.sayIsolation(ctx)

	w.take(ph)

	w.log.Info("worker_draining", "drain", w.config.Drain, "jobs", w.Stats().PickedUp)
	idle := make(chan struct{})
	go func() { w.work.Wait(); close(idle) }()
	if !w.within(idle, w.config.Drain) {
		stopRuns(container.ErrShutdown)
		if !awaitFor(idle, w.config.StopLimit) {
			giveUp()
			awaitFor(idle, leaveTime)
		}
	}
	err := w.left()
	w.log.Info("worker_stopped", "error", err)
	return err
}

// StopNow ends the drain time at once: what a second signal asks for. It may be
// called at any time, also before Run's context ends, and more than once.
func (w *Worker) StopNow() { w.stopped.Do(func() { close(w.stopNow) }) }

// within waits for idle, at most for the drain time and not past StopNow.
func (w *Worker) within(idle <-chan struct{}, drain time.Duration) bool {
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
	case <-w.stopNow:
	}
	return false
}

// awaitFor reports whether the channel is closed within a time.
func awaitFor(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// take claims jobs while a slot is free and starts each one's life.
func (w *Worker) take(ph phases) {
	slots := make(chan struct{}, w.config.Slots)
	pause := queuePause
	for {
		select {
		case slots <- struct{}{}:
		case <-ph.taking.Done():
			return
		}
		d, err := w.next(ph.taking)
		if err != nil {
			<-slots
			if ph.taking.Err() != nil {
				return
			}
			w.log.Error("queue_failed", "error", err, "pause", pause)
			sleep(ph.taking, pause)
			pause = min(2*pause, queuePauseMax)
			continue
		}
		pause = queuePause
		w.work.Go(func() {
			defer func() { <-slots }()
			for d != nil {
				d = w.pickUp(ph, d)
			}
		})
	}
}

// pickUp brings one delivery to its end and returns the one that its settling
// claimed, if any.
func (w *Worker) pickUp(ph phases, d Delivery) (next Delivery) {
	p := w.newPickup(ph, d)
	w.counts.picked.Add(1)
	w.mu.Lock()
	w.pickups[p] = struct{}{}
	w.mu.Unlock()
	p.live()
	w.mu.Lock()
	delete(w.pickups, p)
	w.mu.Unlock()
	return p.next
}

// leave notes that a job's end could not be brought to its queue.
func (w *Worker) leave(p *pickup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsettled = append(w.unsettled, p.job.ID)
}

// next asks the queue for a delivery.
func (w *Worker) next(ctx context.Context) (Delivery, error) {
	d, err := w.config.Queue.Next(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("take a job: %w", err)
	case d == nil:
		return nil, errors.New("take a job: the queue gave neither a job nor an error")
	}
	return d, nil
}

// sayIsolation warns once of a runtime that gives a job no walls.
func (w *Worker) sayIsolation(ctx context.Context) {
	facts, err := w.config.Runtime.Facts(ctx)
	if err == nil && !facts.Isolated {
		w.log.Warn("no_isolation", "runtime", facts.Runtime,
			"meaning", "jobs run on this host without a container: they can reach whatever this user can")
	}
}

// left returns what is still out, nil when nothing is.
func (w *Worker) left() error {
	w.mu.Lock()
	e := &LeftError{}
	for p := range w.pickups {
		e.Jobs = append(e.Jobs, p.job.ID)
	}
	e.Jobs = append(e.Jobs, w.unsettled...)
	for o := range w.orphans {
		e.Orphans = append(e.Orphans, o.labels.Job)
	}
	w.mu.Unlock()
	e.Hooks = w.hooks.left()
	if len(e.Jobs)+len(e.Orphans)+len(e.Hooks) == 0 {
		return nil
	}
	slices.Sort(e.Jobs)
	slices.Sort(e.Orphans)
	return e
}

// sleep waits; false says that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
