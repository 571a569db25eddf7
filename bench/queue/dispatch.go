package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/streams"
)

func runDispatch(ctx context.Context, l load) (result, error) {
	option, err := streams.ClientOption("redis://" + l.addr)
	if err != nil {
		return result{}, err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	q, err := streams.New(streams.Config{Client: client, Prefix: "{" + l.prefix + "}:", Host: "bench", History: time.Minute})
	if err != nil {
		return result{}, err
	}
	if err := submitAll(l.backlog, func(i int) error {
		return q.Submit(ctx, worker.Job{ID: fmt.Sprint("backlog-", i)})
	}); err != nil {
		return result{}, err
	}
	var r result
	start := time.Now()
	if err := workOff(ctx, q, l.slots, l.backlog, func(string) {}); err != nil {
		return result{}, err
	}
	r.JobsPerSecond = float64(l.backlog) / time.Since(start).Seconds()

	t := newTimes()
	worked := make(chan error, 1)
	go func() { worked <- workOff(ctx, q, l.slots, l.paced, t.started) }()
	if err := t.submit(l, func(id string) error { return q.Submit(ctx, worker.Job{ID: id}) }); err != nil {
		return result{}, err
	}
	err = <-worked
	r.P99 = p99(t.latencies)
	return r, err
}

// workOff takes jobs as a worker does, no more than slots at once, until so many
// are settled.
func workOff(ctx context.Context, q *streams.Queue, slots, jobs int, run func(id string)) error {
	free := make(chan struct{}, slots)
	enough, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var settled atomic.Int64
	var all sync.WaitGroup
	for {
		free <- struct{}{}
		d, err := q.Next(enough)
		if err != nil {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			for d != nil {
				run(d.Job().ID)
				if d, err = d.(worker.DoneNexter).DoneNext(ctx, nil); err != nil {
					stop(err)
				}
				if settled.Add(1) == int64(jobs) {
					stop(nil)
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(enough); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
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
