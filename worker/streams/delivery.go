package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

var _ worker.Delivery = (*delivery)(nil)

// maxPassed bounds how many hosts that passed a job on are kept.
const maxPassed = 64

// A delivery is one claim, good for as long as its token is the job's.
type delivery struct {
	queue  *Queue
	job    worker.Job
	body   string // the job's stored form, until it is read
	data   string // its payload, until then
	passed string // stored form of job.Passed
	token  string
	stream string
	entry  string

	settling chan struct{} // holds one element while a call settles
	over     atomic.Bool
}

func (d *delivery) Job() worker.Job      { return d.job }
func (d *delivery) Lease() time.Duration { return d.queue.config.Lease }

func (d *delivery) Extend(ctx context.Context) (cancel bool, err error) {
	if d.over.Load() {
		return false, d.lost("extend a lease")
	}
	q := d.queue
	answer, err := q.run(ctx, "extend a lease", q.scripts.extend,
		[]string{q.keys.job(d.job.ID), d.stream, q.keys.server()},
		[]string{d.token, group, q.consumer, d.entry})
	if err != nil {
		return false, err
	}
	if answer == "lost" {
		return false, d.lost("extend a lease")
	}
	return answer == "cancel", nil
}

func (d *delivery) Done(ctx context.Context, rec *record.Record) error {
	answer := worker.CancelTooLate
	if rec != nil && rec.Reason == record.OperatorCancel {
		answer = worker.CancelStopped
	}
	return d.settle(ctx, ending{what: "done", word: string(answer), record: rec})
}

func (d *delivery) Retry(ctx context.Context, after time.Duration, rec *record.Record) error {
	return d.settle(ctx, ending{what: "retry", after: after, record: rec})
}

func (d *delivery) Defer(ctx context.Context, until time.Time, notHost string) error {
	e := ending{what: "defer", word: notHost}
	if !until.IsZero() {
		e.after = time.Until(until) // so that only this host's clock is asked for it
	}
	if notHost != "" {
		e.passed = append(append([]string(nil), d.job.Passed...), notHost)
		e.passed = e.passed[max(len(e.passed)-maxPassed, 0):]
	}
	return d.settle(ctx, e)
}

func (d *delivery) Dead(ctx context.Context, reason exit.Reason, rec *record.Record) error {
	return d.settle(ctx, ending{what: "dead", word: string(reason), record: rec})
}

// An ending is what the settle script is told.
type ending struct {
	what   string // done, retry, defer or dead
	after  time.Duration
	word   string
	passed []string
	record *record.Record
}

func (d *delivery) settle(ctx context.Context, e ending) error {
	doing := "settle a job (" + e.what + ")"
	select {
	case d.settling <- struct{}{}:
		defer func() { <-d.settling }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if d.over.Load() {
		return d.lost(doing)
	}
	mirrored, passed := "", ""
	if e.record != nil {
		text, err := json.Marshal(e.record)
		if err != nil {
			return fmt.Errorf("%s: write its record: %w", doing, err)
		}
		mirrored = string(text)
	}
	if e.passed != nil {
		text, err := json.Marshal(e.passed)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		passed = string(text)
	}
	q, id := d.queue, d.job.ID
	answer, err := q.run(ctx, doing, q.scripts.settle,
		[]string{q.keys.job(id), d.stream, q.keys.ended(id), q.keys.record(id), q.keys.delayed(), q.keys.dead()},
		[]string{id, d.token, group, d.entry, e.what, millis(e.after), e.word,
			mirrored, millis(q.config.RecordLife), millis(q.config.History), passed})
	if err != nil {
		return err
	}
	if answer == "lost" {
		return d.lost(doing)
	}
	d.over.Store(true)
	return nil
}

func (d *delivery) lost(doing string) error {
	d.over.Store(true)
	return fmt.Errorf("%s: %w", doing, worker.ErrLeaseLost)
}
