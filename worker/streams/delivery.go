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

var _ worker.DoneNexter = (*delivery)(nil)

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
	answer, err := q.run(ctx, q.scripts.extend,
		[]string{q.keys.job(d.job.ID), d.stream, q.keys.server()},
		[]string{d.token, group, q.consumer, d.entry})
	if err != nil {
		return false, fmt.Errorf("extend a lease: %w", err)
	}
	if answer == "lost" {
		return false, d.lost("extend a lease")
	}
	return answer == "cancel", nil
}

func (d *delivery) Done(ctx context.Context, rec *record.Record) error {
	return d.settle(ctx, finished(rec))
}

// DoneNext settles the job and claims the next one in one script. A claim that
// fails is no error: the next Next says what is wrong.
func (d *delivery) DoneNext(ctx context.Context, rec *record.Record) (worker.Delivery, error) {
	var next *delivery
	err := d.settleBy(ctx, finished(rec), func(keys, args []string) (string, error) {
		answer, err := d.queue.askClaim(ctx, d.queue.scripts.settleClaim, idle{}, keys, args)
		if err != nil {
			return "", err
		}
		if !answer.IsArray() {
			return answer.ToString()
		}
		wrong, fields, err := pair(answer)
		if err == nil && len(fields) == deliveryFields {
			next = newDelivery(d.queue, fields)
		}
		d.queue.faults.say(wrong)
		return "ok", err
	})
	if err != nil || next == nil {
		return nil, err
	}
	if readable, err := d.queue.read(ctx, next); err != nil || !readable {
		return nil, nil
	}
	return next, nil
}

func finished(rec *record.Record) ending {
	answer := worker.CancelTooLate
	if rec != nil && rec.Reason == record.OperatorCancel {
		answer = worker.CancelStopped
	}
	return ending{what: "done", word: string(answer), record: rec}
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

func (e ending) String() string { return "settle a job (" + e.what + ")" }

func (d *delivery) settle(ctx context.Context, e ending) error {
	return d.settleBy(ctx, e, func(keys, args []string) (string, error) {
		return d.queue.run(ctx, d.queue.scripts.settle, keys, args)
	})
}

// settleBy settles through a script that answers as the settle script does.
func (d *delivery) settleBy(ctx context.Context, e ending, script func(keys, args []string) (string, error)) error {
	select {
	case d.settling <- struct{}{}:
		defer func() { <-d.settling }()
	case <-ctx.Done():
		return fmt.Errorf("%v: %w", e, ctx.Err())
	}
	if d.over.Load() {
		return d.lost(e.String())
	}
	mirrored, err := e.mirrored()
	if err != nil {
		return fmt.Errorf("%v: write its record: %w", e, err)
	}
	passed, err := e.passedOn()
	if err != nil {
		return fmt.Errorf("%v: %w", e, err)
	}
	q, id := d.queue, d.job.ID
	answer, err := script(
		[]string{q.keys.job(id), d.stream, q.keys.ended(id), q.keys.record(id), q.keys.delayed(), q.keys.dead()},
		[]string{id, d.token, group, d.entry, e.what, millis(e.after), e.word,
			mirrored, millis(q.config.RecordLife), millis(q.config.History), passed})
	if err != nil {
		return fmt.Errorf("%v: %w", e, err)
	}
	if answer == "lost" {
		return d.lost(e.String())
	}
	d.over.Store(true)
	return nil
}

// mirrored returns the text of the mirrored record, "" for none.
func (e ending) mirrored() (string, error) {
	if e.record == nil {
		return "", nil
	}
	text, err := json.Marshal(e.record)
	return string(text), err
}

// passedOn returns the stored form of the hosts that passed the job on.
func (e ending) passedOn() (string, error) {
	if e.passed == nil {
		return "", nil
	}
	text, err := json.Marshal(e.passed)
	return string(text), err
}

func (d *delivery) lost(doing string) error {
	d.over.Store(true)
	return fmt.Errorf("%s: %w", doing, worker.ErrLeaseLost)
}
