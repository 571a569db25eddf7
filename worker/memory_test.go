package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgehero/dispatch/internal/queuetest"
	"github.com/edgehero/dispatch/worker"
)

func TestMemoryQueue(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, _ bool) queuetest.Queue {
		m := &worker.Memory{Lease: time.Hour}
		return queuetest.Queue{
			Producer: m,
			Worker:   m.On,
			Kill:     func(worker.Queue) { m.Expire() },
		}
	})
}

// A claim that is not renewed ends with its lease, and one that is does not.
func TestMemoryLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &worker.Memory{Lease: time.Minute}
		if err := m.Submit(t.Context(), worker.Job{ID: "job"}); err != nil {
			t.Fatal(err)
		}
		first, _ := m.Next(t.Context())
		for range 10 {
			time.Sleep(50 * time.Second)
			if _, err := first.Extend(t.Context()); err != nil {
				t.Fatalf("Extend within the lease: %v", err)
			}
		}
		begin := time.Now()
		second, err := m.Next(t.Context())
		if err != nil || second.Job().Stalls != 1 {
			t.Fatalf("Next: %v, %v, want the job with a stall", second, err)
		}
		if waited := time.Since(begin); waited != time.Minute {
			t.Errorf("the job came back after %v, want a lease", waited)
		}
	})
}

// The history of settled jobs is bounded.
func TestMemoryForgets(t *testing.T) {
	m := &worker.Memory{}
	for i := range 5000 {
		id := fmt.Sprint("job-", i)
		if err := m.Submit(t.Context(), worker.Job{ID: id}); err != nil {
			t.Fatal(err)
		}
		d, err := m.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Done(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Status(context.Background(), "job-0"); err == nil {
		t.Error("the first of 5000 settled jobs is still known")
	}
	if s, err := m.Status(context.Background(), "job-4999"); err != nil || s.State != worker.Settled {
		t.Errorf("Status of the last settled job: %v, %v", s.State, err)
	}
}
