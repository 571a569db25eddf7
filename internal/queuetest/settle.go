package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgehero/dispatch/worker"
)

func testExtend(t *testing.T, q Queue) {
	submitIDs(t, q, "a")
	d := next(t, q.Worker(host), "a")
	wantExtend(t, d, false)
	wantExtend(t, d, false)
	wantCancel(t, q, "a", worker.CancelRequested)
	wantExtend(t, d, true)
	wantExtend(t, d, true)
	ok(t, "Done", d.Done(t.Context(), nil))
}

func testDone(t *testing.T, q Queue) {
	w := q.Worker(host)
	submitIDs(t, q, "a")
	d := next(t, w, "a")
	ok(t, "Done", d.Done(t.Context(), cancelled("a")))
	wantLost(t, d)
	wantEnded(t, q, "a")
	nothingBefore(t, q, w, "b")
	wantDead(t, q)
}

func testRetry(t *testing.T, q Queue) {
	w := q.Worker(host)
	submitIDs(t, q, "a")
	start := time.Now()
	const after = 300 * time.Millisecond
	d := next(t, w, "a")
	ok(t, "Retry", d.Retry(t.Context(), after, nil))
	wantLost(t, d)
	s := wantState(t, q, "a", worker.Delayed)
	if s.Attempts != 1 || s.Due.IsZero() {
		t.Errorf("Status after Retry = %+v, want 1 attempt and a due time", s)
	}
	nothingBefore(t, q, w, "b")
	d = next(t, w, "a")
	if waited := time.Since(start); waited < after-50*time.Millisecond {
		t.Errorf("Next gave the job %v after Retry(%v)", waited, after)
	}
	wantCounts(t, d, 1, 0)
	ok(t, "Retry", d.Retry(t.Context(), 0, nil))
	d = next(t, w, "a")
	wantCounts(t, d, 2, 0)
	ok(t, "Done", d.Done(t.Context(), nil))
}

func testDefer(t *testing.T, q Queue) {
	w := q.Worker(host)
	submitIDs(t, q, "a")
	d := next(t, w, "a")
	until := time.Now().Add(300 * time.Millisecond)
	ok(t, "Defer", d.Defer(t.Context(), until, ""))
	wantLost(t, d)
	wantState(t, q, "a", worker.Delayed)
	nothingBefore(t, q, w, "b")
	d = next(t, w, "a")
	if early := time.Until(until); early > 50*time.Millisecond {
		t.Errorf("Next gave the job %v before the instant of Defer", early)
	}
	wantCounts(t, d, 0, 0)
	ok(t, "Defer", d.Defer(t.Context(), time.Time{}, "")) // long ago
	wantCounts(t, next(t, w, "a"), 0, 0)
}

func testDead(t *testing.T, q Queue) {
	ctx := t.Context()
	w := q.Worker(host)
	submitIDs(t, q, "a", "b")
	wantDead(t, q)
	d := next(t, w, "a")
	ok(t, "Dead", d.Dead(ctx, "stalled", nil))
	wantLost(t, d)
	ok(t, "Dead", next(t, w, "b").Dead(ctx, "container-infra-exit", nil))
	wantDead(t, q, "a stalled 1", "b container-infra-exit 1")
	if s := wantState(t, q, "a", worker.Dead); s.Reason != "stalled" || s.Attempts != 1 {
		t.Errorf("Status of a dead job = %+v, want its reason and 1 attempt", s)
	}
	nothingBefore(t, q, w, "c")

	ok(t, "Requeue", q.Requeue(ctx, "a"))
	wantErr(t, "Requeue of a job that waits", q.Requeue(ctx, "a"), worker.ErrUnknownJob)
	wantDead(t, q, "b container-infra-exit 1")
	d = next(t, w, "a")
	wantCounts(t, d, 0, 0)
	ok(t, "Dead", d.Dead(ctx, "again", nil))
	wantDead(t, q, "b container-infra-exit 1", "a again 1")
	for range q.Dead(ctx) {
		break // the iterator may be left
	}
}

// testSettleOnce settles a delivery many times at once.
func testSettleOnce(t *testing.T, q Queue) {
	w := q.Worker(host)
	for round := range 20 {
		id := fmt.Sprint("job-", round)
		submitIDs(t, q, id)
		d := next(t, w, id)
		var settled atomic.Int32
		var all sync.WaitGroup
		for _, f := range []func() error{
			func() error { return d.Done(t.Context(), nil) },
			func() error { return d.Done(t.Context(), nil) },
			func() error { return d.Dead(t.Context(), "x", nil) },
			func() error { return d.Retry(t.Context(), time.Hour, nil) },
			func() error { return d.Defer(t.Context(), time.Now().Add(time.Hour), "") },
		} {
			all.Go(func() {
				switch err := f(); {
				case err == nil:
					settled.Add(1)
				case !errors.Is(err, worker.ErrLeaseLost):
					t.Errorf("settle %s = %v, want ErrLeaseLost or no error", id, err)
				}
			})
		}
		all.Wait()
		if n := settled.Load(); n != 1 {
			t.Errorf("%d of 5 settled job %s, want 1", n, id)
		}
	}
	nothingBefore(t, q, w, "last")
}

// testEndedContext makes sure that nothing is done for a caller that has left.
func testEndedContext(t *testing.T, q Queue) {
	w := q.Worker(host)
	submitIDs(t, q, "a", "b")
	d := next(t, w, "a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, extend := d.Extend(ended)
	_, cancelErr := q.Cancel(ended, "b")
	_, status := q.Status(ended, "b")
	var dead error
	for _, err := range q.Dead(ended) {
		dead = err
	}
	for what, err := range map[string]error{
		"Submit": q.Submit(ended, worker.Job{ID: "c"}),
		"Extend": extend,
		"Done":   d.Done(ended, nil),
		"Retry":  d.Retry(ended, 0, nil),
		"Defer":  d.Defer(ended, time.Now(), ""),
		"Dead":   d.Dead(ended, "x", nil),
		"Cancel": cancelErr, "Status": status, "list of the dead": dead,
		"Requeue": q.Requeue(ended, "b"),
	} {
		wantErr(t, what+" with an ended context", err, context.Canceled)
	}
	wantExtend(t, d, false)
	ok(t, "Done", d.Done(t.Context(), nil))
	ok(t, "Done", next(t, w, "b").Done(t.Context(), nil))
	nothingBefore(t, q, w, "last")
	wantErr(t, "Status", statusErr(t, q, "c"), worker.ErrUnknownJob)
}

func statusErr(t *testing.T, q Queue, id string) error {
	_, err := q.Status(t.Context(), id)
	return err
}

func testCancelWaiting(t *testing.T, q Queue) {
	submitIDs(t, q, "a", "b")
	wantCancel(t, q, "a", worker.CancelRemoved)
	wantCancel(t, q, "a", worker.CancelRemoved)
	wantEnded(t, q, "a")
	next(t, q.Worker(host), "b")
}

func testCancelDelayed(t *testing.T, q Queue) {
	submit(t, q, worker.Job{ID: "a", Delay: 100 * time.Millisecond})
	wantCancel(t, q, "a", worker.CancelRemoved)
	submit(t, q, worker.Job{ID: "b", Delay: 200 * time.Millisecond})
	next(t, q.Worker(host), "b")
}

func testCancelRunning(t *testing.T, q Queue) {
	ctx := t.Context()
	w := q.Worker(host)
	submitIDs(t, q, "stopped", "too late", "given up")
	for _, tt := range []struct {
		id     string
		settle func(worker.Delivery) error
		want   worker.CancelAnswer
	}{
		{"stopped", func(d worker.Delivery) error { return d.Done(ctx, cancelled("stopped")) }, worker.CancelStopped},
		{"too late", func(d worker.Delivery) error { return d.Done(ctx, nil) }, worker.CancelTooLate},
		{"given up", func(d worker.Delivery) error { return d.Dead(ctx, "x", nil) }, worker.CancelTooLate},
	} {
		d := next(t, w, tt.id)
		wantCancel(t, q, tt.id, worker.CancelRequested)
		wantCancel(t, q, tt.id, worker.CancelRequested)
		if s := wantState(t, q, tt.id, worker.Running); s.Cancel != worker.CancelRequested {
			t.Errorf("Status(%q).Cancel = %q, want %q", tt.id, s.Cancel, worker.CancelRequested)
		}
		ok(t, "settle", tt.settle(d)) // also when the worker has not asked yet
		wantCancel(t, q, tt.id, tt.want)
		wantCancel(t, q, tt.id, tt.want)
	}
}

// testCancelComesBack puts a job back whose cancel came meanwhile.
func testCancelComesBack(t *testing.T, q Queue) {
	w := q.Worker(host)
	for id, putBack := range map[string]func(worker.Delivery) error{
		"retry": func(d worker.Delivery) error { return d.Retry(t.Context(), 0, nil) },
		"defer": func(d worker.Delivery) error { return d.Defer(t.Context(), time.Now(), "") },
	} {
		submitIDs(t, q, id)
		d := next(t, w, id)
		wantCancel(t, q, id, worker.CancelRequested)
		ok(t, id, putBack(d))
		wantLost(t, d)
		wantEnded(t, q, id)
		wantCancel(t, q, id, worker.CancelRemoved)
		nothingBefore(t, q, w, "after "+id)
		submitIDs(t, q, id) // free again, and without the cancel
		d = next(t, w, id)
		wantExtend(t, d, false)
		ok(t, "Done", d.Done(t.Context(), nil))
	}
}

func testCancelEnded(t *testing.T, q Queue) {
	ctx := t.Context()
	w := q.Worker(host)
	submitIDs(t, q, "settled", "dead")
	ok(t, "Done", next(t, w, "settled").Done(ctx, nil))
	ok(t, "Dead", next(t, w, "dead").Dead(ctx, "x", nil))
	answer, err := q.Cancel(ctx, "settled")
	if !errors.Is(err, worker.ErrUnknownJob) && (err != nil || answer != worker.CancelTooLate) {
		t.Errorf("Cancel of a settled job = %q, %v, want %q or ErrUnknownJob", answer, err, worker.CancelTooLate)
	}
	wantCancel(t, q, "dead", worker.CancelTooLate)
	wantCancel(t, q, "dead", worker.CancelTooLate)
	wantDead(t, q, "dead x 1")
	ok(t, "Requeue", q.Requeue(ctx, "dead"))
	wantExtend(t, next(t, w, "dead"), false)
}

func testUnknown(t *testing.T, q Queue) {
	ctx := t.Context()
	_, err := q.Cancel(ctx, "nobody")
	wantErr(t, "Cancel", err, worker.ErrUnknownJob)
	wantErr(t, "Status", statusErr(t, q, "nobody"), worker.ErrUnknownJob)
	wantErr(t, "Requeue", q.Requeue(ctx, "nobody"), worker.ErrUnknownJob)
}

// testCancelStalled cancels jobs whose worker vanished: only another worker can
// stop what may still run, so they are not just removed.
func testCancelStalled(t *testing.T, q Queue) {
	first := q.Worker(host)
	submitIDs(t, q, "before")
	next(t, first, "before")
	wantCancel(t, q, "before", worker.CancelRequested)
	q.Kill(first)
	second := q.Worker(host)
	d := next(t, second, "before")
	wantCounts(t, d, 0, 1)
	wantExtend(t, d, true)
	ok(t, "Done", d.Done(t.Context(), cancelled("before")))
	wantCancel(t, q, "before", worker.CancelStopped)
}

func testStall(t *testing.T, q Queue) {
	first := q.Worker(host)
	submit(t, q, worker.Job{ID: "a", Data: text(100)})
	old := next(t, first, "a")
	q.Kill(first)
	d := next(t, q.Worker(host), "a")
	wantCounts(t, d, 0, 1)
	if len(d.Job().Data) != 100 {
		t.Errorf("Job().Data has %d bytes after a stall, want 100", len(d.Job().Data))
	}
	wantLost(t, old) // nor did it disturb the new claim
	wantExtend(t, d, false)
	ok(t, "Done", d.Done(t.Context(), nil))
	wantLost(t, old)
	wantEnded(t, q, "a")
}

func testStallAndAttempts(t *testing.T, q Queue) {
	submitIDs(t, q, "a")
	for i := range 3 {
		w := q.Worker(host)
		wantCounts(t, next(t, w, "a"), i, i)
		q.Kill(w)
		w = q.Worker(host)
		d := next(t, w, "a")
		wantCounts(t, d, i, i+1)
		ok(t, "Retry", d.Retry(t.Context(), 0, nil))
	}
}

// testPoison has a job that takes every worker with it, and one behind it.
func testPoison(t *testing.T, q Queue) {
	submitIDs(t, q, "poison", "healthy")
	for stalls := range 4 {
		w := q.Worker(host)
		id := "poison"
		if stalls > 0 {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			d, err := w.Next(ctx)
			if err != nil {
				t.Fatalf("Next = %v, want a job", err)
			}
			if d.Job().ID == "healthy" { // once, in front of the poison or behind it
				ok(t, "Done", d.Done(t.Context(), nil))
			} else {
				wantCounts(t, d, 0, stalls)
				q.Kill(w)
				continue
			}
		}
		wantCounts(t, next(t, w, id), 0, stalls)
		q.Kill(w)
	}
	w := q.Worker(host)
	d := next(t, w, "poison")
	wantCounts(t, d, 0, 4)
	ok(t, "Dead", d.Dead(t.Context(), "stalled", nil))
	wantDead(t, q, "poison stalled 1")
	wantEnded(t, q, "healthy")
}
