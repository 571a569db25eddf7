package worker

import (
	"context"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
)

// buildRecord returns the attempt's record, of which nobody but the queue sees
// more than the core where none is kept.
func (p *pickup) buildRecord(e ending) record.Record {
	if p.w.config.Records != nil {
		return record.Build(p.recordRun(e))
	}
	started, ended := p.instants()
	attempt := int64(p.attempt)
	return record.Record{
		JobID: p.job.ID, Attempt: &attempt, Host: exit.Word(p.w.config.Host),
		StartedAt: record.At(started), EndedAt: record.At(ended),
		Outcome: recordOutcome(e.outcome.Class), Reason: e.outcome.Reason, V: record.Version,
	}
}

// recordRun returns what is known of the attempt: what the hooks said of the job
// and, over it, what the worker knows itself.
func (p *pickup) recordRun(e ending) record.Run {
	r := p.description.Record
	r.JobID, r.Attempt, r.Host = p.job.ID, p.attempt, p.w.config.Host
	r.StartedAt, r.EndedAt = p.instants()
	r.Outcome, r.Reason, r.Why = recordOutcome(e.outcome.Class), e.outcome.Reason, e.outcome.Why
	r.Reasons = p.w.config.Reasons
	r.Size, r.Capacity, r.Previous = p.size, p.capacity, p.previous
	r.Job.ID, r.Job.Created, r.Job.Delay = p.job.ID, p.job.Created, p.job.Delay
	r.Job.Attempts, r.Job.Stalls = p.job.Attempts, p.job.Stalls
	r.ExitCode, r.Line, r.HostBudget = nil, nil, nil
	if e.ran {
		code := int64(p.result.Code)
		r.ExitCode, r.Line = &code, p.result.Line
	}
	if e.misfit {
		r.HostBudget = p.host.record(p.description.SharePercent)
	}
	return r
}

// instants returns when the attempt started and ended. The start is the job's
// admission, or its pickup when it did not come to that.
func (p *pickup) instants() (started, ended time.Time) {
	started = p.picked
	if !p.admitted.IsZero() {
		started = p.admitted
	}
	// A clock that jumped back would make the record look like an older job's,
	// which does not settle this one.
	if started.Before(p.job.Created) {
		started = p.job.Created
	}
	ended = p.w.config.Now()
	if ended.Before(started) {
		ended = started
	}
	return started, ended
}

func recordOutcome(c Class) record.Outcome {
	switch c {
	case Completed:
		return record.Completed
	case Policy:
		return record.Policy
	}
	return record.Failed
}

// recordedOutcome returns the outcome that a record settles its job with.
func recordedOutcome(r *record.Record) Outcome {
	if r.Outcome == record.Completed {
		return Outcome{Class: Completed, Reason: r.Reason}
	}
	return Outcome{Class: Policy, Reason: r.Reason}
}

// artifacts lets the embedder take what the run left, and add to what its record
// will be built from. What the worker knows itself it sets afterwards.
func (p *pickup) artifacts(o Outcome) {
	hook := p.w.config.Hooks.Artifacts
	if hook == nil {
		return
	}
	run := Run{Result: p.result, Outcome: o, Record: p.description.Record}
	added, err := call(p.settling, &p.w.hooks, "Artifacts", p.w.config.PrepareLimit, func(ctx context.Context) (record.Run, error) {
		return hook(ctx, p.seen(), run)
	}, nil)
	if err != nil {
		p.log.Error("artifacts_failed", "error", err)
		return
	}
	p.description.Record = added
}
