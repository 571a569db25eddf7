package worker_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

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
			work(b, b.N, worker.Config{Slots: slots})
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
			Host: "host-1", Queue: queue, Slots: jobs,
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

// BenchmarkRecords measures the same with records written, without and with the
// syncs that make them outlive a crash of the machine.
func BenchmarkRecords(b *testing.B) {
	for _, bb := range []struct {
		name    string
		records func() worker.Records
	}{
		{"off", func() worker.Records { return nil }},
		{"unsynced", func() worker.Records { return &record.Store{Dir: b.TempDir(), NoSync: true} }},
		{"synced", func() worker.Records { return &record.Store{Dir: b.TempDir()} }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			work(b, b.N, worker.Config{Records: bb.records(), Slots: 4})
		})
	}
}

// BenchmarkPickup measures the time from a job's submission to its start, with
// an idle worker, as its median and its 99th percentile.
func BenchmarkPickup(b *testing.B) {
	started := make(chan time.Time, 1)
	queue := &worker.Memory{}
	w, err := worker.New(worker.Config{
		Host: "host-1", Queue: queue, Slots: 4, Runtime: startedRuntime{started: started},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	var waits []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := queue.Submit(ctx, worker.Job{ID: fmt.Sprint("job-", len(waits))}); err != nil {
			b.Fatal(err)
		}
		waits = append(waits, (<-started).Sub(begin))
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2]), "p50-ns")
	b.ReportMetric(float64(waits[len(waits)*99/100]), "p99-ns")
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

type startedRuntime struct {
	noRuntime
	started chan<- time.Time
}

func (r startedRuntime) Run(context.Context, container.Spec, container.IO) (container.Result, error) {
	r.started <- time.Now()
	return container.Result{}, nil
}
