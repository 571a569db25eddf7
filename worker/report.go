package worker

import (
	"context"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
)

// buildRecord puts down what is known of the attempt.
func (p *pickup) buildRecord(e ending) record.Record {
	r := p.description.Record
	r.JobID = p.job.ID
	r.Attempt = p.attempt
	return record.Build(r)
}

// recordedOutcome returns the outcome that a record settles its job with.
func recordedOutcome(r *record.Record) Outcome {
	o := Outcome{Class: Policy, Reason: exit.Reason(r.Reason)}
	if r.Outcome == "completed" {
		o.Class = Completed
	}
	return o
}

// artifacts lets the embedder take what the run left.
func (p *pickup) artifacts(ctx context.Context, run *Run) {
	hook := p.w.config.Hooks.Artifacts
	if hook == nil {
		return
	}
}
