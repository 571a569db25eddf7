package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A nextQueue is a memory whose deliveries settle and claim in one step.
type nextQueue struct {
	*worker.Memory
	alone  atomic.Int64 // jobs that Next gave
	chosen atomic.Int64 // jobs that DoneNext gave
	fails  atomic.Int64 // how many calls of DoneNext are still to fail
}

func (q *nextQueue) Next(ctx context.Context) (worker.Delivery, error) {
	d, err := q.Memory.Next(ctx)
	if err != nil {
		return nil, err
	}
	q.alone.Add(1)
	return nextDelivery{d, q}, nil
}

type nextDelivery struct {
	worker.Delivery
	queue *nextQueue
}

func (d nextDelivery) DoneNext(ctx context.Context, rec *record.Record) (worker.Delivery, error) {
	if d.queue.fails.Add(-1) >= 0 {
		return nil, errors.New("no answer")
	}
	if err := d.Done(ctx, rec); err != nil {
		return nil, err
	}
	soon, stop := context.WithTimeout(ctx, time.Nanosecond)
	defer stop()
	next, err := d.queue.Memory.Next(soon)
	if err != nil {
		return nil, nil // none is ready
	}
	d.queue.chosen.Add(1)
	return nextDelivery{next, d.queue}, nil
}

// Settling gives the next job where the queue can, and no more jobs run at a time
// for it than there are slots.
func TestDoneNext(t *testing.T) {
	cleanup := func(context.Context, worker.Pickup) (worker.Preparation, error) {
		return worker.Preparation{Cleanup: func(context.Context) error { return nil }}, nil
	}
	for _, tt := range []struct {
		name    string
		slots   int
		prepare func(context.Context, worker.Pickup) (worker.Preparation, error)
		alone   int64 // of 20 jobs
	}{
		{"one slot", 1, nil, 1},
		{"three slots", 3, nil, 3},
		{"a cleanup, which the next job would wait for", 1, cleanup, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now atomic.Int64
				running := make(chan int64, 20) // how many did when each job began
				q := &nextQueue{}
				q.fails.Store(2)
				b := newBench(t, func(b *bench, c *worker.Config) {
					q.Memory = b.queue
					c.Queue, c.Slots, c.Hooks.Prepare = q, tt.slots, tt.prepare
				})
				b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
					running <- now.Add(1)
					defer now.Add(-1)
					return takes(time.Minute)(ctx, s, io)
				}
				for i := range 20 {
					b.submit(fmt.Sprint("job-", i))
				}
				b.start()
				time.Sleep(time.Hour)
				for i := range 20 {
					b.wantRecord(fmt.Sprint("job-", i), record.Completed, "")
				}
				close(running)
				most := int64(0)
				for n := range running {
					most = max(most, n)
				}
				if most != int64(tt.slots) {
					t.Errorf("%d jobs ran at a time, want %d", most, tt.slots)
				}
				if alone, chosen := q.alone.Load(), q.chosen.Load(); alone != tt.alone || alone+chosen != 20 {
					t.Errorf("Next gave %d jobs and DoneNext %d, want %d and %d", alone, chosen, tt.alone, 20-tt.alone)
				}
				b.wantReleased()
				if err := b.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// A worker that stops claims nothing more.
func TestDoneNextWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &nextQueue{}
		b := newBench(t, func(b *bench, c *worker.Config) {
			q.Memory = b.queue
			c.Queue, c.Drain = q, time.Hour
		})
		b.runtime.run = takes(time.Minute)
		b.submit("runs", "waits")
		b.start()
		synctest.Wait()
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		b.wantRecord("runs", record.Completed, "")
		if s, _ := b.queue.Status(t.Context(), "waits"); s.State != worker.Waiting || q.chosen.Load() != 0 {
			t.Errorf("the job that waits is %q and %d were claimed, want waiting and none", s.State, q.chosen.Load())
		}
	})
}
