package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// Errors of queues and producers.
var (
	// ErrLeaseLost says that the delivery is no longer this worker's: another
	// one may hold the job now. Nothing was changed.
	ErrLeaseLost = errors.New("lease lost")
	// ErrDuplicate says that a job of that id is still known to the queue.
	ErrDuplicate = errors.New("a job of that id is already known")
	// ErrUnknownJob says that the queue knows no job of that id.
	ErrUnknownJob = errors.New("no job of that id is known")
)

// A Job is one unit of work as it stands in a queue.
type Job struct {
	// ID names the job, 1..1024 bytes of UTF-8. It is unique while the job is
	// known.
	ID string `json:"id"`
	// Name says what kind of work it is, for the hooks.
	Name string `json:"name,omitempty"`
	// Data is the job's payload, which only the hooks read.
	Data json.RawMessage `json:"data,omitempty"`
	// Created is when the job was submitted, Delay how long it was to wait
	// then.
	Created time.Time     `json:"created"`
	Delay   time.Duration `json:"delay,omitempty"`
	// Size is the size asked for; an empty dimension takes the default.
	Size jobsize.Request `json:"size,omitzero"`
	// Host, when set, is the only host that may run the job.
	Host string `json:"host,omitempty"`

	// Attempts counts the attempts that finished before this delivery, Stalls
	// the deliveries whose worker vanished. The queue keeps both.
	Attempts int `json:"-"`
	Stalls   int `json:"-"`
	// MayHaveRun says that the queue's server may have forgotten an earlier
	// delivery of this attempt, as one put in a lost one's place does.
	MayHaveRun bool `json:"-"`
	// Passed names, in order, the notHost of each Defer so far, at most the last
	// 64. A queue that serves one host only need not keep it.
	Passed []string `json:"-"`
}

// Check says what is wrong with a job that is to be submitted; nil means nothing.
func (j Job) Check() error {
	switch {
	case j.ID == "" || len(j.ID) > 1024:
		return fmt.Errorf("job id %.64q has %d bytes; want 1 to 1024", j.ID, len(j.ID))
	case !utf8.ValidString(j.ID) || !utf8.ValidString(j.Name) || !utf8.ValidString(j.Host):
		return fmt.Errorf("job %.64q: its id, name or host is not UTF-8", j.ID)
	case j.Delay < 0:
		return fmt.Errorf("job %.64q: delay %v is negative", j.ID, j.Delay)
	case len(j.Data) > 0 && !json.Valid(j.Data):
		return fmt.Errorf("job %.64q: its data of %d bytes is not JSON", j.ID, len(j.Data))
	}
	return nil
}

// A Queue hands out jobs at least once. Implementations are safe for concurrent
// use. While a server is away, methods block until it is back or ctx ends.
type Queue interface {
	// Next waits for a job this host may run and claims it. It returns ctx's
	// error when ctx ends. It never claims a job that it does not return.
	Next(ctx context.Context) (Delivery, error)
}

// A Delivery is one claim on a job, safe for concurrent use. After Done, Retry,
// Defer or Dead has succeeded, or any method has returned ErrLeaseLost, the
// claim is over. A settling method that failed may be called again.
type Delivery interface {
	Job() Job
	// Lease is how long the claim holds without Extend; 0 means for as long as
	// the process lives.
	Lease() time.Duration
	// Extend renews the claim and reports whether somebody asked for the job
	// to be cancelled.
	Extend(ctx context.Context) (cancel bool, err error)
	// Done settles the job. rec is the record that settles it; a queue that
	// mirrors records stores it in the same step, and tells an asker for the
	// job's cancel from it whether the cancel came in time.
	Done(ctx context.Context, rec *record.Record) error
	// Retry counts an attempt and makes the job due again after a while.
	Retry(ctx context.Context, after time.Duration, rec *record.Record) error
	// Defer makes the job due at an instant without counting an attempt. When
	// notHost is set, that host must not take it next if another one can.
	Defer(ctx context.Context, until time.Time, notHost string) error
	// Dead counts an attempt and puts the job on the dead list.
	Dead(ctx context.Context, reason exit.Reason, rec *record.Record) error
}

// A DoneNexter is a Delivery whose queue can settle it and claim the next job in
// one step, which saves a worker that has a free slot then a round trip.
type DoneNexter interface {
	Delivery
	// DoneNext settles the job as Done does and claims another one. next is nil
	// when none is ready, and after an error, which is one of settling.
	DoneNext(ctx context.Context, rec *record.Record) (next Delivery, err error)
}

// A Producer is the submitting side of a queue.
type Producer interface {
	// Submit adds a job. It returns ErrDuplicate while the id is known.
	Submit(ctx context.Context, job Job) error
	// Cancel asks for a job to be stopped wherever it is. It returns
	// ErrUnknownJob.
	Cancel(ctx context.Context, id string) (CancelAnswer, error)
	// Status says where a job stands. It returns ErrUnknownJob.
	Status(ctx context.Context, id string) (Status, error)
	// Dead lists the dead jobs, oldest first.
	Dead(ctx context.Context) iter.Seq2[DeadJob, error]
	// Requeue makes a dead job due again with no attempts counted. It returns
	// ErrUnknownJob.
	Requeue(ctx context.Context, id string) error
}

// A CancelAnswer says what became of a request to cancel a job.
type CancelAnswer string

// The answers to a cancel. Asking again gives the current answer.
const (
	CancelRemoved   CancelAnswer = "removed"   // it was waiting and will not run
	CancelRequested CancelAnswer = "requested" // it runs; its worker has been told
	CancelStopped   CancelAnswer = "stopped"   // its worker stopped it
	CancelTooLate   CancelAnswer = "too-late"  // it had ended before
)

// A Status says where a job stands in its queue.
type Status struct {
	State    State
	Job      Job
	Due      time.Time    // for a delayed job
	Host     string       // for a running job, where that is known
	Reason   exit.Reason  // for a dead job
	Cancel   CancelAnswer // "" when nobody asked
	Attempts int
	Stalls   int
}

// A State is one of the places a job can be in.
type State string

// The states of a job that its queue still knows.
const (
	Waiting State = "waiting"
	Delayed State = "delayed"
	Running State = "running"
	Dead    State = "dead"
	// Settled jobs are known only for a while, by queues that keep a history.
	Settled State = "settled"
)

// A DeadJob is a job that will not be tried again, and why.
type DeadJob struct {
	Job    Job
	Reason exit.Reason
	At     time.Time
}
