// Package queuetest holds what every queue of a worker must do. Each
// implementation runs the same suite.
package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
	"github.com/google/go-cmp/cmp"
)

// A Queue is an empty queue under test.
type Queue struct {
	worker.Producer
	// Worker returns the queue as one more worker on a host sees it.
	Worker func(host string) worker.Queue
	// Kill makes a worker vanish with the claims it holds. Their jobs must come
	// back by themselves, within seconds.
	Kill func(worker.Queue)
	// OneHost says that all workers of the queue are on one host, so that a job
	// can't be passed on to another.
	OneHost bool
}

// A Factory makes an empty queue, which ends with the test. A queue whose claims
// are leases makes them short when the test kills workers, and else long enough
// for a test that takes minutes.
type Factory func(t *testing.T, kills bool) Queue

// Run runs the suite.
func Run(t *testing.T, open Factory) { run(t, open, true) }

// RunWithoutKills runs the suite less the tests that kill workers: for workers
// that share one life. open is never told of kills.
func RunWithoutKills(t *testing.T, open Factory) { run(t, open, false) }

func run(t *testing.T, open Factory, kills bool) {
	for _, tt := range []struct {
		name  string
		kills bool
		test  func(t *testing.T, q Queue)
	}{
		{"Delivery", false, testDelivery},
		{"Ids", false, testIDs},
		{"Refused", false, testRefused},
		{"Payload", false, testPayload},
		{"NextWaits", false, testNextWaits},
		{"NextEnds", false, testNextEnds},
		{"Order", false, testOrder},
		{"Delay", false, testDelay},
		{"Unique", false, testUnique},
		{"UniqueRace", false, testUniqueRace},
		{"Extend", false, testExtend},
		{"Done", false, testDone},
		{"Retry", false, testRetry},
		{"Defer", false, testDefer},
		{"DeadAndRequeue", false, testDead},
		{"SettleOnce", false, testSettleOnce},
		{"EndedContext", false, testEndedContext},
		{"Hosts", false, testHosts},
		{"PassedOn", false, testPassedOn},
		{"ManyWorkers", false, testManyWorkers},
		{"CancelWaiting", false, testCancelWaiting},
		{"CancelDelayed", false, testCancelDelayed},
		{"CancelRunning", false, testCancelRunning},
		{"CancelRunningComesBack", false, testCancelComesBack},
		{"CancelEnded", false, testCancelEnded},
		{"CancelUnknown", false, testUnknown},
		{"CancelStalled", true, testCancelStalled},
		{"Stall", true, testStall},
		{"StallAndAttemptsApart", true, testStallAndAttempts},
		{"Poison", true, testPoison},
	} {
		if tt.kills && !kills {
			continue
		}
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t, tt.kills)) })
	}
}

const host = "host-a"

func submit(t *testing.T, q Queue, job worker.Job) {
	t.Helper()
	if err := q.Submit(t.Context(), job); err != nil {
		t.Fatalf("Submit(%.64q) = %v, want no error", job.ID, err)
	}
}

func submitIDs(t *testing.T, q Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		submit(t, q, worker.Job{ID: id})
	}
}

// patience bounds what must come by itself.
const patience = 2 * time.Minute

// next takes the next job, which must be the one of the id.
func next(t *testing.T, w worker.Queue, id string) worker.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := w.Next(ctx)
	if err != nil {
		t.Fatalf("Next = %v, want job %.64q", err, id)
	}
	if got := d.Job().ID; got != id {
		t.Fatalf("Next = job %.64q, want %.64q", got, id)
	}
	return d
}

// nothingBefore makes sure that a worker gets the marker and no other job.
func nothingBefore(t *testing.T, q Queue, w worker.Queue, marker string) {
	t.Helper()
	submitIDs(t, q, marker)
	ok(t, "Done", next(t, w, marker).Done(t.Context(), nil))
}

func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = %v, want no error", what, err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

// wantCounts checks what a delivery says of the past.
func wantCounts(t *testing.T, d worker.Delivery, attempts, stalls int) {
	t.Helper()
	if j := d.Job(); j.Attempts != attempts || j.Stalls != stalls {
		t.Errorf("job %.64q: attempts %d, stalls %d, want %d, %d", j.ID, j.Attempts, j.Stalls, attempts, stalls)
	}
}

func wantState(t *testing.T, q Queue, id string, want worker.State) worker.Status {
	t.Helper()
	s, err := q.Status(t.Context(), id)
	if err != nil || s.State != want || s.Job.ID != id {
		t.Fatalf("Status(%.64q) = %s of %.64q, %v, want %s", id, s.State, s.Job.ID, err, want)
	}
	return s
}

// wantEnded checks a job that is no more: settled, for a queue with a history, or
// unknown.
func wantEnded(t *testing.T, q Queue, id string) {
	t.Helper()
	s, err := q.Status(t.Context(), id)
	if !errors.Is(err, worker.ErrUnknownJob) && (err != nil || s.State != worker.Settled) {
		t.Errorf("Status(%.64q) = %s, %v, want %s or ErrUnknownJob", id, s.State, err, worker.Settled)
	}
}

func wantCancel(t *testing.T, q Queue, id string, want worker.CancelAnswer) {
	t.Helper()
	if got, err := q.Cancel(t.Context(), id); err != nil || got != want {
		t.Errorf("Cancel(%.64q) = %q, %v, want %q", id, got, err, want)
	}
}

func wantExtend(t *testing.T, d worker.Delivery, want bool) {
	t.Helper()
	if got, err := d.Extend(t.Context()); err != nil || got != want {
		t.Errorf("Extend of %.64q = %v, %v, want %v", d.Job().ID, got, err, want)
	}
}

// wantLost checks that a claim is over for every method.
func wantLost(t *testing.T, d worker.Delivery) {
	t.Helper()
	ctx := t.Context()
	_, err := d.Extend(ctx)
	wantErr(t, "Extend", err, worker.ErrLeaseLost)
	wantErr(t, "Done", d.Done(ctx, nil), worker.ErrLeaseLost)
	wantErr(t, "Retry", d.Retry(ctx, 0, nil), worker.ErrLeaseLost)
	wantErr(t, "Defer", d.Defer(ctx, time.Now(), ""), worker.ErrLeaseLost)
	wantErr(t, "Dead", d.Dead(ctx, "too-late", nil), worker.ErrLeaseLost)
}

// deadList returns "id reason attempts" for each dead job.
func deadList(t *testing.T, q Queue) []string {
	t.Helper()
	var list []string
	for d, err := range q.Dead(t.Context()) {
		if err != nil {
			t.Fatalf("Dead = %v, want no error", err)
		}
		if d.At.IsZero() {
			t.Errorf("Dead: job %.64q has no time", d.Job.ID)
		}
		list = append(list, fmt.Sprintf("%s %s %d", d.Job.ID, d.Reason, d.Job.Attempts))
	}
	return list
}

func wantDead(t *testing.T, q Queue, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, deadList(t, q)); diff != "" {
		t.Errorf("Dead: (-want +got)\n%s", diff)
	}
}

// cancelled is the record of a run that was stopped because somebody asked.
func cancelled(id string) *record.Record {
	return &record.Record{JobID: id, Reason: exit.Reason("operator-cancel")}
}

// text returns a JSON string of so many bytes.
func text(bytes int) json.RawMessage {
	data := make([]byte, bytes)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	data[0], data[bytes-1] = '"', '"'
	return data
}
