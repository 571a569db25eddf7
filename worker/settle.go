package worker

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
)

// token is the form of a reason and of what details it.
var token = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

const (
	// writePause is the wait after a record that could not be written; it
	// doubles up to writePauseMax.
	writePause    = time.Second
	writePauseMax = 30 * time.Second
	// unreadPause is how long a job waits whose earlier record can't be read.
	unreadPause = 30 * time.Second
	// awayPause is how long a job waits whose runtime does not answer.
	awayPause = 10 * time.Second
)

// An ending says how a pickup ends: handed back, settled by a record that is
// there, or with an outcome.
type ending struct {
	handBack bool // due again without an attempt counted
	until    time.Time
	notHost  string

	settled *record.Record

	outcome  Outcome
	nameless bool // no record can be kept under the job's id
	ran      bool // there is a result
	misfit   bool // the job never fits this host
}

func handBack(until time.Time, notHost string) *ending {
	return &ending{handBack: true, until: until, notHost: notHost}
}

func refuse(reason exit.Reason, why exit.Word) *ending {
	return &ending{outcome: Outcome{Class: Policy, Reason: reason, Why: why, NothingSpent: true}}
}

func giveUp(reason exit.Reason) *ending {
	return &ending{outcome: Outcome{Class: Infra, Reason: reason}}
}

// failed ends an attempt that did not come to its run, for another to try. When
// the pickup was stopped meanwhile, that is what ends it.
func (p *pickup) failed(reason exit.Reason, event string, err error) *ending {
	if end := p.stopped(); end != nil {
		return end
	}
	p.log.Error(event, "error", err)
	return &ending{outcome: Outcome{Class: Infra, Reason: reason, Retry: true, NothingSpent: true}}
}

// notStarted ends a pickup for which the runtime could start nothing. A runtime
// that does not answer says nothing of the job and costs it no attempt.
func (p *pickup) notStarted(event string, err error) *ending {
	if errors.Is(err, container.ErrUnavailable) && p.stopped() == nil {
		p.log.Warn("runtime_away", "pause", awayPause, "error", err)
		return handBack(p.w.config.Now().Add(awayPause), "")
	}
	return p.failed(reasonNeverStarted, event, err)
}

// refusedOrFailed ends a pickup after a hook's error.
func (p *pickup) refusedOrFailed(event string, err error) *ending {
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal == nil {
		return p.failed(reasonWorkerError, event, err)
	}
	reason, why := refusal.Reason, refusal.Why
	if !p.w.config.knows(reason) {
		reason = reasonPrepare
	}
	if !token.MatchString(string(why)) {
		why = ""
	}
	p.log.Warn("job_refused", "reason", reason, "why", why)
	return refuse(reason, why)
}

// finish brings a pickup to its end in the queue. What can't be brought there,
// because the lease is lost or the worker gives up, is left to the queue, which
// hands the job out again and finds the record then.
func (p *pickup) finish(e ending) {
	switch {
	case p.lost.Load():
		p.leaseLost()
	case e.handBack:
		p.step("defer")
		p.log.Info("job_handed_back", "until", e.until)
		if p.tell("defer", func(ctx context.Context) error { return p.delivery.Defer(ctx, e.until, e.notHost) }) {
			p.w.counts.deferred.Add(1)
			ev := p.event(JobHandedBack)
			ev.Due = e.until
			p.w.observe(ev)
		}
	case e.settled != nil:
		p.log.Info("job_settled_from_record", "outcome", e.settled.Outcome)
		p.settle(recordedOutcome(e.settled), e.settled)
	case e.nameless:
		p.settle(e.outcome, nil)
	default:
		p.step("record")
		rec := p.buildRecord(e)
		if p.write(rec) {
			p.settle(e.outcome, &rec)
		}
	}
}

// write puts the record on disk. While that fails the job is neither lost nor
// run again: it keeps its claim and its slot, and the write is tried again.
func (p *pickup) write(rec record.Record) bool {
	if p.w.config.Records == nil {
		return true
	}
	pause := writePause
	for try := 1; ; try++ {
		err := p.w.config.Records.Write(rec)
		if err == nil {
			if try > 1 {
				p.w.counts.recordsBlocked.Add(-1)
			}
			return true
		}
		if try == 1 {
			p.w.counts.recordsBlocked.Add(1)
		}
		p.log.Error("record_write_failed", "try", try, "pause", pause, "error", err)
		if !sleep(p.settling, pause) {
			p.w.counts.recordsBlocked.Add(-1)
			p.w.leave(p)
			return false
		}
		pause = min(2*pause, writePauseMax)
	}
}

// settle tells of the outcome whoever has to know, the queue last.
func (p *pickup) settle(o Outcome, rec *record.Record) {
	again := o.Retry && p.attempt < p.w.config.Attempts
	if o.Class != Completed && !again {
		p.step("notify")
		p.notify(o.Class, o.Reason)
	}
	p.step("settle")
	ev := p.event(JobEnded)
	ev.Outcome = o
	var count *atomic.Int64
	var told bool
	switch {
	case again:
		wait := p.w.config.Backoff.after(p.attempt, p.w.config.random())
		ev.Kind, ev.Due, count = JobRetried, ev.At.Add(wait), &p.w.counts.retried
		told = p.tell("retry", func(ctx context.Context) error { return p.delivery.Retry(ctx, wait, rec) })
	case o.Class == Infra:
		ev.Kind, count = JobDead, &p.w.counts.dead
		told = p.tell("dead", func(ctx context.Context) error { return p.delivery.Dead(ctx, o.Reason, rec) })
	default:
		count = &p.w.counts.completed
		if o.Class == Policy {
			count = &p.w.counts.policy
		}
		told = p.tell("done", func(ctx context.Context) error { return p.done(ctx, rec) })
	}
	if !told {
		return
	}
	count.Add(1)
	p.log.Info("job_"+string(ev.Kind), "class", o.Class, "reason", o.Reason, "due", ev.Due)
	p.w.observe(ev)
}

// done settles the job and, where the queue can do both in one step, claims the
// next one for the slot. That one starts once this one's share is given back: not
// with a Cleanup in between, which may take long, nor when the worker stops.
func (p *pickup) done(ctx context.Context, rec *record.Record) (err error) {
	d, ok := p.delivery.(DoneNexter)
	if !ok || p.preparation.Cleanup != nil || p.ph.taking.Err() != nil {
		return p.delivery.Done(ctx, rec)
	}
	p.next, err = d.DoneNext(ctx, rec)
	return err
}

// tell tells the queue what becomes of the job, until it has heard it. It
// reports whether the queue took it.
func (p *pickup) tell(what string, settle func(context.Context) error) bool {
	p.telling.Store(true)
	pause := queuePause
	for {
		err := settle(p.settling)
		switch {
		case err == nil:
			return true
		case errors.Is(err, ErrLeaseLost):
			p.leaseLost()
			return false
		}
		p.log.Error("queue_failed", "telling", what, "pause", pause, "error", err)
		if !sleep(p.settling, pause) {
			p.w.leave(p)
			return false
		}
		pause = min(2*pause, queuePauseMax)
	}
}

func (p *pickup) leaseLost() {
	p.w.counts.lost.Add(1)
	p.log.Warn("lease_lost", "meaning", "another worker may hold the job now; this one settles nothing")
}
