package queuetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/worker"
	"github.com/google/go-cmp/cmp"
)

func testDelivery(t *testing.T, q Queue) {
	want := worker.Job{
		ID:      "job 1",
		Name:    "build",
		Data:    json.RawMessage(`{"a": [1, 2.50, "\u0000"], "a": null}`),
		Created: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC),
		Size:    jobsize.Request{Memory: "512m"},
		Host:    host,
	}
	submit(t, q, want)
	if diff := cmp.Diff(want, wantState(t, q, want.ID, worker.Waiting).Job); diff != "" {
		t.Errorf("Status: the job: (-want +got)\n%s", diff)
	}
	d := next(t, q.Worker(host), want.ID)
	if diff := cmp.Diff(want, d.Job()); diff != "" {
		t.Errorf("Next: the job: (-want +got)\n%s", diff)
	}
	if d.Lease() < 0 {
		t.Errorf("Lease() = %v, want 0 or more", d.Lease())
	}
	wantState(t, q, want.ID, worker.Running)
	ok(t, "Done", d.Done(t.Context(), nil))
	wantEnded(t, q, want.ID)

	// What the producer says of the past does not count.
	submit(t, q, worker.Job{ID: "job 2", Attempts: 7, Stalls: 7, Passed: []string{"x"}})
	d = next(t, q.Worker(host), "job 2")
	if j := d.Job(); j.Attempts != 0 || j.Stalls != 0 || j.Passed != nil || j.Created.IsZero() || j.Data != nil {
		t.Errorf("Next = %+v, want a new job of now without data", j)
	}
}

func testIDs(t *testing.T, q Queue) {
	w := q.Worker(host)
	for _, id := range []string{
		".", "..", "../../etc/passwd", "/", "a/b", "a\x00b", "a\nb", " ", "*?[x]", "-rf", "job:1", "JOB:1",
		"é", "e\u0301", "日本語", "\u2028", strings.Repeat("x", 1024), strings.Repeat("x", 1023), "new-1", "end-1", "{}:1",
	} {
		submitIDs(t, q, id)
		d := next(t, w, id)
		wantState(t, q, id, worker.Running)
		ok(t, "Done", d.Done(t.Context(), nil))
	}
}

func testRefused(t *testing.T, q Queue) {
	for _, job := range []worker.Job{
		{},
		{ID: strings.Repeat("x", 1025)},
		{ID: "negative", Delay: -1},
		{ID: "not-json", Data: json.RawMessage(`{"a":`)},
	} {
		if err := q.Submit(t.Context(), job); err == nil || errors.Is(err, worker.ErrDuplicate) {
			t.Errorf("Submit(%.64q, delay %v, data %q) = %v, want an error", job.ID, job.Delay, job.Data, err)
		}
	}
	nothingBefore(t, q, q.Worker(host), "good")
}

func testPayload(t *testing.T, q Queue) {
	data := text(10 << 20)
	want := bytes.Clone(data)
	submit(t, q, worker.Job{ID: "large", Data: data})
	clear(data) // the queue has its own by now
	d := next(t, q.Worker(host), "large")
	if !bytes.Equal(d.Job().Data, want) {
		t.Fatalf("Next: the data of %d bytes came as %d others", len(want), len(d.Job().Data))
	}
	ok(t, "Retry", d.Retry(t.Context(), 0, nil))
	d = next(t, q.Worker(host), "large")
	if !bytes.Equal(d.Job().Data, want) {
		t.Fatalf("Next after Retry: the data of %d bytes came as %d others", len(want), len(d.Job().Data))
	}
	ok(t, "Done", d.Done(t.Context(), nil))
}

func testNextWaits(t *testing.T, q Queue) {
	got := make(chan string, 1)
	w := q.Worker(host)
	go func() {
		d, err := w.Next(t.Context())
		if err != nil {
			got <- err.Error()
			return
		}
		got <- d.Job().ID
	}()
	submitIDs(t, q, "late")
	if id := <-got; id != "late" {
		t.Errorf("Next that waited = %s, want job late", id)
	}
}

func testNextEnds(t *testing.T, q Queue) {
	w := q.Worker(host)
	ended, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := w.Next(ended)
		got <- err
	}()
	cancel()
	wantErr(t, "Next that waited", <-got, context.Canceled)

	submitIDs(t, q, "a")
	if d, err := w.Next(ended); d != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context = %v, %v, want none and its error", d, err)
	}
	next(t, w, "a") // nobody holds it
}

func testOrder(t *testing.T, q Queue) {
	var ids []string
	for i := range 200 {
		ids = append(ids, fmt.Sprint("job-", i))
	}
	submitIDs(t, q, ids...)
	w := q.Worker(host)
	for _, id := range ids {
		ok(t, "Done", next(t, w, id).Done(t.Context(), nil))
	}
}

func testDelay(t *testing.T, q Queue) {
	w := q.Worker(host)
	start := time.Now()
	const delay = 300 * time.Millisecond
	submit(t, q, worker.Job{ID: "hour", Delay: time.Hour})
	submit(t, q, worker.Job{ID: "ages", Delay: 1<<63 - 1})
	submit(t, q, worker.Job{ID: "delayed", Delay: delay})
	if s := wantState(t, q, "hour", worker.Delayed); s.Due.Sub(start) < 59*time.Minute {
		t.Errorf("Status: due %v after the submit, want an hour", s.Due.Sub(start))
	}
	nothingBefore(t, q, w, "now")
	d := next(t, w, "delayed")
	// A clock of another machine's may be a little off.
	if waited := time.Since(start); waited < delay-50*time.Millisecond {
		t.Errorf("Next gave a job %v after it was submitted with a delay of %v", waited, delay)
	}
	if d.Job().Delay != delay {
		t.Errorf("Job().Delay = %v, want %v", d.Job().Delay, delay)
	}
	ok(t, "Done", d.Done(t.Context(), nil))
	nothingBefore(t, q, w, "last")
}

func testUnique(t *testing.T, q Queue) {
	ctx := t.Context()
	again := func(state string) {
		t.Helper()
		wantErr(t, "Submit while "+state, q.Submit(ctx, worker.Job{ID: "one", Name: "again"}), worker.ErrDuplicate)
	}
	w := q.Worker(host)
	submitIDs(t, q, "one")
	again("waiting")
	d := next(t, w, "one")
	again("running")
	ok(t, "Retry", d.Retry(ctx, 10*time.Millisecond, nil))
	again("delayed")
	d = next(t, w, "one")
	ok(t, "Dead", d.Dead(ctx, "broken", nil))
	again("dead")
	ok(t, "Requeue", q.Requeue(ctx, "one"))
	d = next(t, w, "one")
	if d.Job().Name != "" {
		t.Errorf("Job().Name = %q, want that of the first submit", d.Job().Name)
	}
	ok(t, "Done", d.Done(ctx, nil))

	// Free again, and as new.
	submitIDs(t, q, "one")
	again("waiting again")
	wantState(t, q, "one", worker.Waiting)
	wantCancel(t, q, "one", worker.CancelRemoved)
	submitIDs(t, q, "one")
	d = next(t, w, "one")
	wantCounts(t, d, 0, 0)
	wantExtend(t, d, false)
	ok(t, "Done", d.Done(ctx, nil))
}

func testUniqueRace(t *testing.T, q Queue) {
	w := q.Worker(host)
	for round := range 20 {
		id := fmt.Sprint("race-", round)
		var taken atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				switch err := q.Submit(t.Context(), worker.Job{ID: id}); {
				case err == nil:
					taken.Add(1)
				case !errors.Is(err, worker.ErrDuplicate):
					t.Errorf("Submit(%q) = %v, want ErrDuplicate or no error", id, err)
				}
			})
		}
		all.Wait()
		if n := taken.Load(); n != 1 {
			t.Errorf("Submit(%q) by 8 at once was accepted %d times, want 1", id, n)
		}
		ok(t, "Done", next(t, w, id).Done(t.Context(), nil))
	}
	nothingBefore(t, q, w, "last")
}

func testManyWorkers(t *testing.T, q Queue) {
	const jobs, workers = 400, 8
	var mu sync.Mutex
	seen := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range workers {
		w := q.Worker(host)
		all.Go(func() {
			for {
				d, err := w.Next(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil {
					t.Errorf("Next = %v, want a job", err)
					return
				}
				j := d.Job()
				mu.Lock()
				seen[fmt.Sprint(j.ID, " ", j.Attempts)]++
				mu.Unlock()
				if strings.HasSuffix(j.ID, "5") && j.Attempts == 0 {
					err = d.Retry(t.Context(), 0, nil)
				} else {
					err = d.Done(t.Context(), nil)
				}
				if err != nil {
					t.Errorf("settle %s = %v, want no error", j.ID, err)
				}
				mu.Lock()
				last := len(seen) == jobs+jobs/10
				mu.Unlock()
				if last {
					stop()
				}
			}
		})
	}
	for i := range jobs {
		submitIDs(t, q, fmt.Sprint("job-", i))
	}
	all.Wait()
	if len(seen) != jobs+jobs/10 {
		t.Errorf("%d deliveries, want %d", len(seen), jobs+jobs/10)
	}
	for delivery, n := range seen {
		if n != 1 {
			t.Errorf("delivery %s came %d times, want 1", delivery, n)
		}
	}
}

func testHosts(t *testing.T, q Queue) {
	submit(t, q, worker.Job{ID: "bound", Host: "host-b"})
	nothingBefore(t, q, q.Worker(host), "free")
	d := next(t, q.Worker("host-b"), "bound")
	ok(t, "Retry", d.Retry(t.Context(), 0, nil))
	nothingBefore(t, q, q.Worker(host), "free again")
	next(t, q.Worker("host-b"), "bound")
}

func testPassedOn(t *testing.T, q Queue) {
	a := q.Worker(host)
	if q.OneHost {
		submitIDs(t, q, "large")
		ok(t, "Defer", next(t, a, "large").Defer(t.Context(), time.Now(), host))
		next(t, a, "large") // there is nobody else
		return
	}
	b := q.Worker("host-b")
	submitIDs(t, q, "large")
	ok(t, "Defer", next(t, a, "large").Defer(t.Context(), time.Now(), host))
	nothingBefore(t, q, a, "small")
	d := next(t, b, "large")
	if diff := cmp.Diff([]string{host}, d.Job().Passed); diff != "" {
		t.Errorf("Job().Passed: (-want +got)\n%s", diff)
	}
	wantCounts(t, d, 0, 0)
}
