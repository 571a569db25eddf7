package worker

import (
	"context"
	"io"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// Hooks are what an embedder brings. Each is optional and is called from many
// goroutines at once, with a context that ends after a limit or when the job is
// to stop. A hook that panics, or that does not return within 5 seconds after
// its context has ended, fails its job's attempt where its answer is needed, is
// logged, and never takes the worker down.
type Hooks struct {
	// Describe says what a job is. It reads nothing but the job. Without it a job
	// has no image and its record no identity but the job's id.
	Describe func(ctx context.Context, job Job) (Description, error)
	// Pause may put a job off, also to bound how many jobs of one project run at
	// a time: the job is due again at the instant it returns, at most a day
	// ahead, without an attempt counted. The zero instant lets the job go on.
	Pause func(ctx context.Context, p Pickup) (until time.Time, err error)
	// Prepare makes the workspace and says what to run. On an error it has to
	// leave nothing behind; a *Refusal refuses the job for good, any other error
	// is retried. Without it the image's own command runs.
	Prepare func(ctx context.Context, p Pickup) (Preparation, error)
	// Output takes a line of a running job without its newline, at most 4 KiB of
	// it. Lines come in order; those that come faster than Output takes them are
	// dropped and counted.
	Output func(ctx context.Context, p Pickup, line []byte) error
	// Artifacts takes what a run left in its folder, before the record is
	// written, and returns run.Record with what it adds to it. Its error is
	// logged and changes nothing else. A crash may call it again for the same
	// attempt.
	Artifacts func(ctx context.Context, p Pickup, run Run) (record.Run, error)
	// Notify tells somebody of a job that ended without success. An error is
	// tried again, three times in all, unless it hangs. After a crash the same notification may
	// come again, with the same ID.
	Notify func(ctx context.Context, n Notification) error
	// Observe is told what becomes of jobs, in order for each attempt: the next
	// one may be picked up before it is told of a short retry. While a call
	// hangs, further events are dropped and counted.
	Observe func(ctx context.Context, e Event) error
}

// A Description says what a job is.
type Description struct {
	// Record holds the identity that goes into the job's record: kind, target,
	// flow, project, provider, model and the like. The worker sets what it knows
	// itself.
	Record record.Run
	// Image is the reference or id of the image that the job runs in. Empty only
	// under the process runtime.
	Image string
	// SharePercent is the part of this host's budget, 1..99 in percent, that the
	// job may have. Any other number bounds nothing.
	SharePercent int64
}

// A Pickup is one attempt of a job as hooks see it. What a later step finds out
// is zero in an earlier one.
type Pickup struct {
	Job         Job
	Attempt     int // 1 for the first
	Description Description
	Size        jobsize.Size    // from Prepare on
	Image       container.Image // from Prepare on
	Dir         string          // from the run on
}

// A Preparation says what to run.
type Preparation struct {
	// Spec says what the job needs. The worker sets its Image, Job, Attempt,
	// Instance, Host, Size and CPUs.
	Spec container.Spec
	// Input is sent to the job's standard input. Nil sends none.
	Input io.Reader
	// Dir is the run's folder, for Artifacts. It may be empty.
	Dir string
	// TimeLimit bounds the run. Defaults to Config.TimeLimit.
	TimeLimit time.Duration
	// RetryCodes are exit codes, other than 0, that are worth another attempt
	// even where they would settle the job.
	RetryCodes []int
	// NoLog leaves the job's output out of the run log.
	NoLog bool
	// Cleanup gives back what Prepare took. It is called once, on every path out.
	Cleanup func(ctx context.Context) error
}

// A Refusal is the error of a Prepare or Describe hook that refuses a job for
// good: it is recorded as policy and not retried.
type Refusal struct {
	// Reason is one that package record or Config.Reasons lists. Anything else
	// becomes prepare-refused.
	Reason exit.Reason
	// Why details the reason with a token, `[a-z][a-z0-9-]{0,63}`. Anything else
	// is left out.
	Why exit.Word
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Why == "" {
		return "refused: " + string(r.Reason)
	}
	return "refused: " + string(r.Reason) + ", " + string(r.Why)
}

// A Run is a run that has ended, before its record is written.
type Run struct {
	Result  container.Result
	Outcome Outcome
	// Record is what the record will be built from, as Describe gave it.
	Record record.Run
}

// An Event is one thing that became of a job.
type Event struct {
	Kind    EventKind
	Job     string // its id
	Name    string
	Attempt int
	At      time.Time
	// Outcome is that of the attempt, for the kinds that end one.
	Outcome Outcome
	// Due is when a job that was retried or handed back is due again.
	Due time.Time
}

// An EventKind says what became of a job.
type EventKind string

// The kinds of events.
const (
	JobPicked  EventKind = "picked"  // this worker claimed it
	JobStarted EventKind = "started" // it has its slot and its share of the host
	JobEnded   EventKind = "ended"   // it is settled, completed or policy
	JobRetried EventKind = "retried" // its attempt failed and another will come
	JobDead    EventKind = "dead"    // its last attempt failed
	JobOrphan  EventKind = "orphan"  // its container may still run
	// JobHandedBack jobs are due again without an attempt counted.
	JobHandedBack EventKind = "handed-back"
)
