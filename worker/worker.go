package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/record"
)

// A Runtime runs the containers. [container.Docker], [container.Podman] and
// [container.Process] are ones. It is safe for concurrent use.
type Runtime interface {
	Facts(ctx context.Context) (container.Facts, error)
	// Image returns an error that is container.ErrImageMissing for an image
	// that is not there.
	Image(ctx context.Context, ref string) (container.Image, error)
	// Run stops the container and then returns when ctx ends; its result carries
	// context.Cause(ctx). An error says that nothing was started.
	Run(ctx context.Context, spec container.Spec, io container.IO) (container.Result, error)
	// Stop stops and removes a container; one that is gone is no error.
	Stop(ctx context.Context, name string) error
	List(ctx context.Context, filter container.Labels) ([]container.State, error)
}

// Records keeps the records of this host's jobs. [record.Store] is one. It is
// safe for concurrent use.
type Records interface {
	// Write keeps a record in place of the job's earlier one. When it returns,
	// the record outlives a crash.
	Write(rec record.Record) error
	// Read returns an error that is fs.ErrNotExist for a job without a record.
	Read(jobID string) (record.Record, error)
}

var (
	_ Runtime = (*container.Docker)(nil)
	_ Runtime = (*container.Podman)(nil)
	_ Runtime = (*container.Process)(nil)
	_ Records = (*record.Store)(nil)
)

// A Mirror is where other hosts' records can be seen.
type Mirror interface {
	// Record returns nil for a job without a record there.
	Record(ctx context.Context, jobID string) (*record.Record, error)
}

// OnLeaseLost says what becomes of a run whose job was given to another worker.
type OnLeaseLost string

// The choices for a run whose lease was lost. Neither settles the job.
const (
	StopRun   OnLeaseLost = "stop"
	FinishRun OnLeaseLost = "finish"
)

// A Config says what a [Worker] works with. Queue, Runtime and Host are needed;
// everything else has a default.
type Config struct {
	Queue   Queue
	Runtime Runtime
	// Records keeps what became of each job. Without it no record is written and
	// the queue is told the core of one alone; a job that had finished may then
	// run again after a crash, which only a queue that is gone with the process,
	// as a [Memory], does not mind. Defaults to none.
	Records Records
	// Mirror shows the records of other hosts. Defaults to none.
	Mirror Mirror
	// Hooks are what the embedder brings. Defaults to none.
	Hooks Hooks

	// Host is this host's name, in records and labels:
	// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
	Host string
	// Instance is the id of this worker process, in the labels of its
	// containers. Defaults to the runtime's.
	Instance string
	// Hosts returns the names of the live hosts of the fleet. A job that never
	// fits this host is then offered to the others before it is refused.
	// Defaults to this host alone.
	Hosts func(ctx context.Context) ([]string, error)

	// Slots is how many jobs run at a time, 1..16384. Defaults to the number of
	// CPUs.
	Slots int
	// Budget is how much of this host its jobs may have together. Each dimension
	// that is unknown defaults to what the runtime says of the host, less a
	// reserve.
	Budget jobsize.Budget
	// DefaultSize is the size of a job that asks for none. A dimension that is
	// empty defaults to that of package jobsize.
	DefaultSize jobsize.Request
	// TimeLimit bounds a run. Defaults to 30 minutes.
	TimeLimit time.Duration
	// Attempts is how often a job is tried in all. Defaults to 3.
	Attempts int
	// Stalls is how many workers a job may take with it before it is given up.
	// Defaults to 3.
	Stalls int
	// Backoff says how long a failed job waits.
	Backoff Backoff
	// OnLeaseLost defaults to StopRun.
	OnLeaseLost OnLeaseLost

	// Drain is how long running jobs may go on once Run's context has ended.
	// Defaults to 0: they are stopped at once.
	Drain time.Duration
	// StopLimit bounds the time from stopping the runs to Run's return.
	// Defaults to 1 minute.
	StopLimit time.Duration
	// CancelPoll is how often a claim is renewed and asked for a cancel, and
	// more often where its lease is short. Defaults to 2 seconds.
	CancelPoll time.Duration
	// HookLimit bounds one call of a hook. Defaults to 30 seconds.
	HookLimit time.Duration
	// PrepareLimit bounds Prepare, its Cleanup and Artifacts instead. Defaults
	// to 10 minutes.
	PrepareLimit time.Duration

	// Parser reads exit lines. Its zero value has the default vocabulary.
	Parser exit.Parser
	// Reasons are those of the embedder's refusals, beside the ones that package
	// record and Parser's vocabulary list. Each is a token,
	// `[a-z][a-z0-9-]{0,63}`.
	Reasons []exit.Reason
	// OpenLog opens the log that takes a job's output as it comes, such as
	// [record.Store.OpenLog] does. It may return nil for none. Defaults to no
	// logs.
	OpenLog func(jobID string) io.WriteCloser
	// Live lists the jobs that run right now. Defaults to none.
	Live *livejobs.Registry
	// Log takes the worker's own log. Defaults to no log.
	Log *slog.Logger
	// Now is the wall clock. Defaults to time.Now.
	Now func() time.Time

	random func() float64    // in [0, 1)
	step   func(name string) // called before each step of a job's life
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// check returns the config with its defaults, or an error for each field that
// can't be worked with.
func (c Config) check() (Config, error) {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Queue == nil, "Queue: none is given")
	wrong(c.Runtime == nil, "Runtime: none is given")
	wrong(!hostName.MatchString(c.Host), "Host: %.80q is not a host name: want 1 to 64 letters, digits, dots, underscores and dashes, a letter or digit first", c.Host)
	def(&c.Slots, min(runtime.NumCPU(), jobsize.MaxHostSlots))
	wrong(c.Slots < 1 || c.Slots > jobsize.MaxHostSlots, "Slots: %d is not in 1..%d", c.Slots, jobsize.MaxHostSlots)
	_, err := jobsize.Resolve(jobsize.Request{}, c.DefaultSize)
	wrong(err != nil, "DefaultSize: %w", err)
	def(&c.Attempts, 3)
	wrong(c.Attempts < 1, "Attempts: %d is not positive", c.Attempts)
	def(&c.Stalls, 3)
	wrong(c.Stalls < 1, "Stalls: %d is not positive", c.Stalls)
	def(&c.OnLeaseLost, StopRun)
	wrong(c.OnLeaseLost != StopRun && c.OnLeaseLost != FinishRun, "OnLeaseLost: %.80q is neither %q nor %q", c.OnLeaseLost, StopRun, FinishRun)
	c.Reasons = slices.Concat(c.Reasons, c.Parser.Vocabulary.Policy, c.Parser.Vocabulary.Completed)
	for _, reason := range c.Reasons {
		wrong(!token.MatchString(string(reason)), "Reasons: %.80q is not a token: want 1 to 64 lower-case letters, digits and dashes, a letter first", reason)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"TimeLimit", &c.TimeLimit, 30 * time.Minute},
		{"Backoff.Base", &c.Backoff.Base, 10 * time.Second},
		{"Backoff.Max", &c.Backoff.Max, 10 * time.Minute},
		{"Drain", &c.Drain, 0},
		{"StopLimit", &c.StopLimit, time.Minute},
		{"CancelPoll", &c.CancelPoll, 2 * time.Second},
		{"HookLimit", &c.HookLimit, 30 * time.Second},
		{"PrepareLimit", &c.PrepareLimit, 10 * time.Minute},
	} {
		def(d.value, d.def)
		wrong(*d.value < 0, "%s: %v is negative", d.name, *d.value)
	}
	def(&c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.random == nil {
		c.random = rand.Float64
	}
	if c.step == nil {
		c.step = func(string) {}
	}
	return c, errors.Join(errs...)
}

// knows reports whether a record can hold a reason.
func (c *Config) knows(reason exit.Reason) bool {
	_, known := record.Meaning(reason)
	return known || slices.Contains(c.Reasons, reason)
}

// def sets what is zero to its default.
func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Worker takes jobs off a queue and runs each to its record.
type Worker struct {
	config  Config
	log     *slog.Logger
	hooks   hooks
	ledger  ledger
	work    sync.WaitGroup // pickups and the watches of orphans
	counts  counts
	started atomic.Bool
	stopNow chan struct{} // closed by StopNow
	stopped sync.Once

	mu        sync.Mutex
	pickups   map[*pickup]struct{} // those under way
	unsettled []string             // ids of jobs that it gave up on settling
	orphans   map[*orphan]struct{}
}

// New returns a worker that has started nothing yet.
func New(config Config) (*Worker, error) {
	c, err := config.check()
	if err != nil {
		return nil, fmt.Errorf("configure worker: %w", err)
	}
	return &Worker{
		config:  c,
		log:     c.Log,
		hooks:   hooks{log: c.Log},
		stopNow: make(chan struct{}),
		pickups: map[*pickup]struct{}{},
		orphans: map[*orphan]struct{}{},
	}, nil
}

// counts are the running totals behind Stats.
type counts struct {
	picked, completed, policy, retried, dead, deferred, lost atomic.Int64
	recordsBlocked, events, lines                            atomic.Int64
}

// A Stats is a snapshot of a worker: what is under way, and totals since New.
type Stats struct {
	Slots     int          // how many jobs may run at a time
	PickedUp  int          // jobs under way, from claim to settling
	Running   int          // those that have their share of the host, orphans too
	InLine    int          // those that wait for it
	Orphans   int          // containers that may still run after their stop
	Used      jobsize.Size // what the running ones hold together
	Picked    int64        // deliveries taken
	Completed int64        // jobs settled as completed
	Policy    int64        // jobs settled as policy
	Retried   int64        // attempts that failed with another to come
	Dead      int64        // jobs given up
	Deferred  int64        // deliveries given back without an attempt counted
	LeaseLost int64        // deliveries that another worker took over
	// RecordsBlocked is how many jobs wait because their record can't be written
	// now.
	RecordsBlocked int64
	EventsDropped  int64 // events that Observe was not told of
	LinesDropped   int64 // lines that Output was not given
	HooksHanging   []string
}

// Stats returns a snapshot.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	pickedUp, orphans := len(w.pickups), len(w.orphans)
	w.mu.Unlock()
	used, holders, inLine := w.ledger.usage()
	return Stats{
		Slots: w.config.Slots, PickedUp: pickedUp, Running: holders, InLine: inLine, Orphans: orphans, Used: used,
		Picked:         w.counts.picked.Load(),
		Completed:      w.counts.completed.Load(),
		Policy:         w.counts.policy.Load(),
		Retried:        w.counts.retried.Load(),
		Dead:           w.counts.dead.Load(),
		Deferred:       w.counts.deferred.Load(),
		LeaseLost:      w.counts.lost.Load(),
		RecordsBlocked: w.counts.recordsBlocked.Load(),
		EventsDropped:  w.counts.events.Load(),
		LinesDropped:   w.counts.lines.Load(),
		HooksHanging:   w.hooks.left(),
	}
}
