package worker_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// noRuntime is a runtime that does nothing, so that what is measured is ours.
type noRuntime struct{ worker.Runtime }

func (noRuntime) Facts(context.Context) (container.Facts, error) {
	return container.Facts{Isolated: true}, nil
}
func (noRuntime) List(context.Context, container.Labels) ([]container.State, error) { return nil, nil }
func (noRuntime) Run(context.Context, container.Spec, container.IO) (container.Result, error) {
	return container.Result{}, nil
}

// noRecords keeps nothing.
type noRecords struct{ worker.Records }

func (noRecords) Write(record.Record) error { return nil }

// drained is a queue that says when its last job was settled.
type drained struct {
	worker.Queue
	left *sync.WaitGroup
}

func (q drained) Next(ctx context.Context) (worker.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	if err != nil {
		return nil, err
	}
	return drainedDelivery{d, q.left}, nil
}

type drainedDelivery struct {
	worker.Delivery
	left *sync.WaitGroup
}

func (d drainedDelivery) Done(ctx context.Context, rec *record.Record) error {
	defer d.left.Done()
	return d.Delivery.Done(ctx, rec)
}

// work runs n jobs to their end.
func work(b *testing.B, n int, c worker.Config) {
	b.Helper()
	var left sync.WaitGroup
	left.Add(n)
	queue := &worker.Memory{}
	for i := range n {
		if err := queue.Submit(b.Context(), worker.Job{ID: fmt.Sprint("job-", i)}); err != nil {
			b.Fatal(err)
		}
	}
	c.Host, c.Runtime, c.Queue = "host-1", noRuntime{}, drained{queue, &left}
	w, err := worker.New(c)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	b.ResetTimer()
	go func() { done <- w.Run(ctx) }()
	left.Wait()
	b.StopTimer()
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWorker measures what the worker adds to a job: memory queue, a
// runtime that does nothing, no records.
func BenchmarkWorker(b *testing.B) {
	for _, slots := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			b.ReportAllocs()
			work(b, b.N, worker.Config{Records: noRecords{}, Slots: slots})
		})
	}
}

// BenchmarkRunning measures the memory of a worker with 1000 running jobs that
// do nothing, without the tails, which are the runtime's.
func BenchmarkRunning(b *testing.B) {
	const jobs = 1000
	for b.Loop() {
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		queue := &worker.Memory{}
		for i := range jobs {
			if err := queue.Submit(b.Context(), worker.Job{ID: fmt.Sprint("job-", i)}); err != nil {
				b.Fatal(err)
			}
		}
		var started sync.WaitGroup
		started.Add(jobs)
		w, err := worker.New(worker.Config{
			Host: "host-1", Queue: queue, Records: noRecords{}, Slots: jobs,
			Runtime: waitingRuntime{started: &started},
		})
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		started.Wait()
		runtime.GC()
		runtime.ReadMemStats(&during)
		b.ReportMetric(float64(int64(during.HeapInuse+during.StackInuse)-int64(before.HeapInuse+before.StackInuse))/(1<<20), "MiB")
		stop()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

type waitingRuntime struct {
	noRuntime
	started *sync.WaitGroup
}

func (r waitingRuntime) Run(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
	r.started.Done()
	return untilStopped(ctx, s, io)
}
