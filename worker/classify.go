package worker

import (
	"errors"
	"slices"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// The reasons that the worker itself gives. Those of a run that exited 0 or 2
// come from its exit line.
const (
	reasonCancel                    = record.OperatorCancel
	reasonTimeout       exit.Reason = "job-timeout"
	reasonAbort         exit.Reason = "worker-abort"
	reasonOOM           exit.Reason = "oom-killed"
	reasonRunnerPolicy  exit.Reason = "runner-policy"
	reasonInfraExit     exit.Reason = "container-infra-exit"
	reasonNeverStarted  exit.Reason = "container-never-started"
	reasonDetached      exit.Reason = "container-detached"
	reasonUnknownExit   exit.Reason = "container-unknown-exit"
	reasonImageMissing  exit.Reason = "job-image-missing"
	reasonPrepare       exit.Reason = "prepare-refused"
	reasonExceedsHost   exit.Reason = "job-size-exceeds-host"
	reasonExceedsShare  exit.Reason = "job-size-exceeds-share"
	reasonStalled       exit.Reason = "stalled"
	reasonAttemptsSpent exit.Reason = "attempts-exhausted"
	reasonWorkerError   exit.Reason = "worker-error"
)

// A Class says what kind of end a run came to.
type Class string

// The classes of a run's end.
const (
	Completed Class = "completed" // it did what it was to do, or waits for somebody
	Policy    Class = "policy"    // it was refused or stopped; the same would happen again
	Infra     Class = "infra"     // it was failed by what it ran on; a retry may pass
)

// An Outcome is what a run's end means for its job.
type Outcome struct {
	Class Class
	// Reason says why. For a completed run it is what the run waits for, "" when
	// it waits for nothing.
	Reason exit.Reason
	// Why details the reason of a policy outcome.
	Why exit.Word
	// Retry is true when another attempt may end otherwise.
	Retry bool
	// HandBack is true when the job goes back to the queue without counting an
	// attempt: the worker stopped before it had started.
	HandBack bool
	// NothingSpent is true when no process of the job ever ran.
	NothingSpent bool
	// CostTrusted is true when the cost and the tokens of the run's line may be
	// settled with: the line claims the exit code that the run really had.
	CostTrusted bool
	// HostOOM is true for a genuine memory kill well below the job's limit: the
	// host ran out of memory, not the job.
	HostOOM bool
	// Rule says in words which rule decided.
	Rule string
}

// Classify says what a run's end means. The container's real exit code alone
// decides the class; the exit line picks a label inside it. retryCodes are
// further exit codes, other than 0, that the job wants retried.
func Classify(r container.Result, retryCodes ...int) Outcome {
	o := classify(r, retryCodes)
	o.NothingSpent = r.NeverStarted
	o.CostTrusted = !r.Detached && r.Line != nil && r.Line.Code != nil && *r.Line.Code == int64(r.Code)
	return o
}

// classify decides by the first rule that matches.
func classify(r container.Result, retryCodes []int) Outcome {
	oom, atLimit := oomReport(r)
	switch {
	case r.Detached:
		return infra(reasonDetached, "the runtime lost the run: how it ended is not known")
	case r.Aborted:
		return aborted(r)
	case oom && atLimit:
		// The same size would end the same way.
		return Outcome{Class: Policy, Reason: reasonOOM, Rule: "a signed report of a memory kill, exit code 137 and a memory peak of 90 % of the limit or more"}
	case r.Code == 0:
		return Outcome{Class: Completed, Reason: line(r).CompletedReason, Rule: "exit code 0"}
	case !r.NeverStarted && slices.Contains(retryCodes, r.Code):
		return infra(reasonInfraExit, "an exit code that the job wants retried")
	case r.Code == 2:
		l := line(r)
		if l.Reason == "" {
			return Outcome{Class: Policy, Reason: reasonRunnerPolicy, Rule: "exit code 2, with no reason in the exit line"}
		}
		return Outcome{Class: Policy, Reason: l.Reason, Why: l.Why, Rule: "exit code 2, with the exit line's reason"}
	case r.Code == 1:
		return infra(reasonInfraExit, "exit code 1")
	case r.NeverStarted:
		return infra(reasonNeverStarted, "no process of the job ever ran")
	}
	o := infra(reasonUnknownExit, "an exit code that no other rule knows")
	o.HostOOM = oom && !atLimit
	if o.HostOOM {
		o.Rule = "a memory kill below 90 % of the job's limit: the host's, not the job's"
	}
	return o
}

func infra(reason exit.Reason, rule string) Outcome {
	return Outcome{Class: Infra, Reason: reason, Retry: true, Rule: rule}
}

// aborted classifies a run that the worker stopped.
func aborted(r container.Result) Outcome {
	switch {
	case errors.Is(r.Cause, container.ErrCancelled):
		return Outcome{Class: Policy, Reason: reasonCancel, Rule: "stopped: somebody asked for its cancel"}
	case errors.Is(r.Cause, container.ErrTimeout):
		return Outcome{Class: Policy, Reason: reasonTimeout, Rule: "stopped at its time limit"}
	case errors.Is(r.Cause, container.ErrShutdown):
		return Outcome{Class: Policy, Reason: reasonAbort, HandBack: r.NeverStarted, Rule: "stopped with its worker"}
	}
	return Outcome{Class: Policy, Reason: reasonAbort, Rule: "stopped by its worker"}
}

// oomReport reports whether the supervisor's signed line says that the command
// was killed for memory and the real exit code agrees, and whether the memory
// peak then was at the job's own limit. A peak or a limit that is not known
// makes neither true: such a report cannot be told from a kill by the host.
func oomReport(r container.Result) (reported, atLimit bool) {
	l := line(r)
	if !l.OOMKilled || !l.Verified || r.Auth != exit.Verified || r.Code != 137 || l.Resources == nil || l.Resources.MemPeak == nil {
		return false, false
	}
	limit, ok := r.MemoryLimit.Value()
	if !ok || limit <= 0 {
		return false, false
	}
	return true, jobsize.PeakReachedLimit(*l.Resources.MemPeak, limit)
}

// line returns the run's exit line, an empty one when it has none.
func line(r container.Result) exit.Line {
	if r.Line == nil {
		return exit.Line{}
	}
	return *r.Line
}
