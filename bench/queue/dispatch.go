package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/streams"
)

// A consumer works jobs off, no more than slots at once, and returns when so many
// are settled. It calls run when a job starts. end is for after the measuring: it
// waits until nothing is left.
type consumer func(ctx context.Context, q *streams.Queue, slots, jobs int, run func(id string)) (end func() error, err error)

// dispatch returns the system that works its jobs off by a consumer.
func dispatch(workOff consumer) func(context.Context, load) (result, error) {
	return func(ctx context.Context, l load) (result, error) {
		q, closeQueue, err := openQueue(l)
		if err != nil {
			return result{}, err
		}
		defer closeQueue()
		producer, closeProducer, err := openQueue(l)
		if err != nil {
			return result{}, err
		}
		defer closeProducer()
		submit := func(id string) error { return producer.Submit(ctx, worker.Job{ID: id}) }
		if err := submitAll(l.backlog, func(i int) error { return submit(fmt.Sprint("backlog-", i)) }); err != nil {
			return result{}, err
		}
		var r result
		start := time.Now()
		end, err := workOff(ctx, q, l.slots, l.backlog, func(string) {})
		if err != nil {
			return result{}, err
		}
		r.JobsPerSecond = float64(l.backlog) / time.Since(start).Seconds()
		if err := end(); err != nil {
			return result{}, err
		}

		t := newTimes()
		worked := make(chan error, 1)
		go func() {
			end, err := workOff(ctx, q, l.slots, l.paced, t.started)
			if err == nil {
				err = end()
			}
			worked <- err
		}()
		if err := t.submit(l, submit); err != nil {
			return result{}, err
		}
		err = <-worked
		r.P99 = p99(t.latencies)
		return r, err
	}
}

// openQueue opens the round's queue with a client of its own, as producers and
// workers have.
func openQueue(l load) (*streams.Queue, func(), error) {
	option, err := streams.ClientOption("redis://" + l.addr)
	if err != nil {
		return nil, nil, err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, nil, err
	}
	q, err := streams.New(streams.Config{Client: client, Prefix: "{" + l.prefix + "}:", Host: "bench", History: time.Minute})
	return q, client.Close, err
}

// queueAlone takes jobs as a worker does.
func queueAlone(ctx context.Context, q *streams.Queue, slots, jobs int, run func(id string)) (end func() error, err error) {
	enough, stop := context.WithCancelCause(ctx)
	var settled atomic.Int64
	chain := func(d worker.Delivery) {
		for d != nil {
			run(d.Job().ID)
			next, err := d.(worker.DoneNexter).DoneNext(ctx, nil)
			if err != nil {
				stop(err)
			}
			if settled.Add(1) == int64(jobs) {
				stop(nil)
			}
			d = next
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		free := make(chan struct{}, slots)
		for {
			free <- struct{}{}
			d, err := q.Next(enough)
			if err != nil {
				stop(err)
				return
			}
			all.Go(func() {
				chain(d)
				<-free
			})
		}
	})
	<-enough.Done()
	end = func() error { all.Wait(); return nil }
	if err := context.Cause(enough); !errors.Is(err, context.Canceled) {
		return end, err
	}
	return end, nil
}

// wholeWorker is the worker with a runtime that does nothing, and no record on the
// disk.
func wholeWorker(ctx context.Context, q *streams.Queue, slots, jobs int, run func(id string)) (end func() error, err error) {
	w, err := worker.New(worker.Config{Queue: q, Runtime: idle{run: run}, Host: "bench", Slots: slots})
	if err != nil {
		return nil, err
	}
	enough, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(enough) }()
	for w.Stats().Completed < int64(jobs) {
		select {
		case err := <-ended:
			stop()
			return nil, fmt.Errorf("the worker ended before its jobs: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	return func() error { stop(); return <-ended }, nil
}

// idle is a runtime whose jobs do nothing.
type idle struct {
	worker.Runtime
	run func(id string)
}

func (idle) Facts(context.Context) (container.Facts, error) {
	return container.Facts{Isolated: true}, nil
}

func (idle) List(context.Context, container.Labels) ([]container.State, error) { return nil, nil }

func (i idle) Run(_ context.Context, spec container.Spec, _ container.IO) (container.Result, error) {
	i.run(spec.Job)
	return container.Result{}, nil
}

// submitAll submits with 16 at once.
func submitAll(n int, submit func(i int) error) error {
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			for i := part; i < n; i += 16 {
				if err := submit(i); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// times measures from the submit of a job to its start.
type times struct {
	mu        sync.Mutex
	submitted map[string]time.Time
	latencies []time.Duration
}

func newTimes() *times { return &times{submitted: map[string]time.Time{}} }

func (t *times) submit(l load, submit func(id string) error) error {
	ticker := time.NewTicker(l.pace)
	defer ticker.Stop()
	for i := range l.paced {
		<-ticker.C
		id := fmt.Sprint("paced-", i)
		t.mu.Lock()
		t.submitted[id] = time.Now()
		t.mu.Unlock()
		if err := submit(id); err != nil {
			return err
		}
	}
	return nil
}

func (t *times) started(id string) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies = append(t.latencies, now.Sub(t.submitted[id]))
}
