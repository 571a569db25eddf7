package worker

import (
	"container/heap"
	"container/list"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
)

// memoryHistory is how many settled and removed jobs a Memory still knows.
const memoryHistory = 4096

// A Memory is a queue and its producer in one process's memory, for tests and
// for control planes that keep their jobs themselves: what it holds is gone with
// the process. The zero value is ready to use. Its methods are safe for
// concurrent use.
//
// A Memory serves one host; [Memory.On] gives it more.
type Memory struct {
	// Lease is how long a claim holds without Extend. After that the job is
	// handed out again with its stalls raised. Defaults to for ever. It must not
	// be changed once the queue is in use.
	Lease time.Duration

	mu      sync.Mutex
	jobs    map[string]*memoryJob
	ready   list.List // of *memoryJob, in the order they are handed out
	timed   timedJobs // delayed jobs by due, running ones by the end of their lease
	dead    list.List // of *memoryJob, oldest first
	ended   list.List // of *memoryJob that are settled or removed, oldest first
	hosts   map[string]bool
	claims  int64
	changed chan struct{}
}

var (
	_ Queue    = (*Memory)(nil)
	_ Producer = (*Memory)(nil)
	_ Delivery = (*memoryClaim)(nil)
)

// A memoryJob is a job and where it stands.
type memoryJob struct {
	status Status
	// skipEnds is until when the hosts that passed the job on leave it to others.
	skipEnds time.Time
	// claim is the number of the claim that holds the job.
	claim int64
	lease time.Time
	at    time.Time     // its key in timed
	index int           // its place in timed, -1 when it is not there
	place *list.Element // its place in ready, dead or ended
	over  time.Time     // when it died
}

// timedJobs is a heap by at.
type timedJobs []*memoryJob

func (t timedJobs) Len() int           { return len(t) }
func (t timedJobs) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timedJobs) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}
func (t *timedJobs) Push(x any) {
	j := x.(*memoryJob)
	j.index = len(*t)
	*t = append(*t, j)
}
func (t *timedJobs) Pop() any {
	old := *t
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	j.index = -1
	return j
}

// On returns the queue as a host of that name sees it: with the jobs that only
// this host may run, and without those that another host should take first.
func (m *Memory) On(host string) Queue {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts == nil {
		m.hosts = map[string]bool{}
	}
	m.hosts[host] = true
	return memoryHost{m, host}
}

type memoryHost struct {
	memory *Memory
	host   string
}

func (h memoryHost) Next(ctx context.Context) (Delivery, error) { return h.memory.next(ctx, h.host) }

// Next implements [Queue] for a host without a name.
func (m *Memory) Next(ctx context.Context) (Delivery, error) { return m.next(ctx, "") }

func (m *Memory) next(ctx context.Context, host string) (Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.mu.Lock()
		now := time.Now()
		m.wake(now)
		j, again := m.pick(host, now)
		if j != nil {
			d := m.claimJob(j, host, now)
			m.mu.Unlock()
			return d, nil
		}
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		await(ctx, changed, again)
	}
}

// await returns when ctx ends, the channel is closed or, unless it is zero, the
// instant is reached.
func await(ctx context.Context, changed <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-due:
	}
}

// wake makes ready what is due and what lost its lease.
func (m *Memory) wake(now time.Time) {
	for len(m.timed) > 0 && !m.timed[0].at.After(now) {
		j := m.timed[0]
		if j.status.State == Running && j.lease.After(now) {
			j.at = j.lease // it was extended
			heap.Fix(&m.timed, 0)
			continue
		}
		if j.status.State == Running {
			j.status.Stalls++
		}
		heap.Pop(&m.timed)
		m.makeReady(j)
	}
}

// pick returns the first job that the host may take, and else the instant at
// which there may be one, zero when no clock brings it.
func (m *Memory) pick(host string, now time.Time) (found *memoryJob, again time.Time) {
	if len(m.timed) > 0 {
		again = m.timed[0].at
	}
	for e := m.ready.Front(); e != nil; e = e.Next() {
		j := e.Value.(*memoryJob)
		if j.status.Job.Host != "" && j.status.Job.Host != host {
			continue
		}
		if !j.skipEnds.After(now) || !m.leftToOthers(j, host) {
			return j, time.Time{}
		}
		if again.IsZero() || j.skipEnds.Before(again) {
			again = j.skipEnds
		}
	}
	return nil, again
}

// leftToOthers reports whether the host passed the job on and another one has
// yet to see it.
func (m *Memory) leftToOthers(j *memoryJob, host string) bool {
	passed := j.status.Job.Passed
	if !slices.Contains(passed, host) {
		return false
	}
	for other := range m.hosts {
		if !slices.Contains(passed, other) {
			return true
		}
	}
	return false
}

func (m *Memory) claimJob(j *memoryJob, host string, now time.Time) Delivery {
	m.unplace(j)
	m.claims++
	j.claim = m.claims
	j.status.State, j.status.Host = Running, host
	if m.Lease > 0 {
		j.lease = now.Add(m.Lease)
		m.schedule(j, j.lease)
	}
	return &memoryClaim{memory: m, job: j, number: j.claim, handed: j.handed()}
}

// handed returns the job as a delivery shows it.
func (j *memoryJob) handed() Job {
	job := j.status.Job
	job.Attempts, job.Stalls = j.status.Attempts, j.status.Stalls
	job.Passed = slices.Clone(job.Passed)
	return job
}

func (m *Memory) schedule(j *memoryJob, at time.Time) {
	j.at = at
	heap.Push(&m.timed, j)
}

// unplace takes a job out of every list.
func (m *Memory) unplace(j *memoryJob) {
	if j.index >= 0 {
		heap.Remove(&m.timed, j.index)
	}
	if j.place != nil {
		// Remove does nothing on the lists that the element is not in.
		m.ready.Remove(j.place)
		m.dead.Remove(j.place)
		m.ended.Remove(j.place)
		j.place = nil
	}
	j.claim = 0
	j.status.Host = ""
	j.status.Due = time.Time{}
}

func (m *Memory) makeReady(j *memoryJob) {
	m.unplace(j)
	j.status.State = Waiting
	j.place = m.ready.PushBack(j)
	m.announce()
}

// makeDue makes a job ready at an instant.
func (m *Memory) makeDue(j *memoryJob, due time.Time) {
	m.unplace(j)
	if !due.After(time.Now()) {
		m.makeReady(j)
		return
	}
	j.status.State, j.status.Due = Delayed, due
	m.schedule(j, due)
	m.announce() // whoever waits must look at the clock again
}

// end keeps a job that is settled or removed for a while.
func (m *Memory) end(j *memoryJob, answer CancelAnswer) {
	m.unplace(j)
	j.status.State, j.status.Cancel = Settled, answer
	j.status.Job.Data = nil
	j.place = m.ended.PushBack(j)
	if m.ended.Len() > memoryHistory {
		oldest := m.ended.Front().Value.(*memoryJob)
		m.unplace(oldest)
		delete(m.jobs, oldest.status.Job.ID)
	}
}

func (m *Memory) announce() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// Submit implements [Producer].
func (m *Memory) Submit(ctx context.Context, job Job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return fmt.Errorf("submit job: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.jobs[job.ID]; old != nil {
		if old.status.State != Settled {
			return fmt.Errorf("submit job %.64q: %w", job.ID, ErrDuplicate)
		}
		m.unplace(old)
	}
	if m.jobs == nil {
		m.jobs = map[string]*memoryJob{}
	}
	job.Data = slices.Clone(job.Data)
	job.Attempts, job.Stalls, job.Passed = 0, 0, nil
	if job.Created.IsZero() {
		job.Created = time.Now()
	}
	j := &memoryJob{status: Status{Job: job}, index: -1}
	m.jobs[job.ID] = j
	m.makeDue(j, time.Now().Add(job.Delay))
	return nil
}

// Cancel implements [Producer].
func (m *Memory) Cancel(ctx context.Context, id string) (CancelAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.find(ctx, "cancel", id)
	if err != nil {
		return "", err
	}
	s := &j.status
	switch s.State {
	case Waiting, Delayed:
		if s.Stalls > 0 {
			// Only a worker can stop what the vanished one left running.
			s.Cancel = CancelRequested
			m.makeReady(j)
			break
		}
		m.end(j, CancelRemoved)
	case Running:
		s.Cancel = CancelRequested
	case Dead, Settled:
		if s.Cancel == "" {
			s.Cancel = CancelTooLate
		}
	}
	return s.Cancel, nil
}

// Status implements [Producer].
func (m *Memory) Status(ctx context.Context, id string) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.find(ctx, "ask for", id)
	if err != nil {
		return Status{}, err
	}
	s := j.status
	s.Job = j.handed()
	return s, nil
}

// Dead implements [Producer].
func (m *Memory) Dead(ctx context.Context) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(DeadJob{}, err)
			return
		}
		for _, d := range m.deadJobs() {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (m *Memory) deadJobs() []DeadJob {
	m.mu.Lock()
	defer m.mu.Unlock()
	var dead []DeadJob
	for e := m.dead.Front(); e != nil; e = e.Next() {
		j := e.Value.(*memoryJob)
		dead = append(dead, DeadJob{Job: j.handed(), Reason: j.status.Reason, At: j.over})
	}
	return dead
}

// Requeue implements [Producer].
func (m *Memory) Requeue(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.find(ctx, "requeue", id)
	if err != nil {
		return err
	}
	if j.status.State != Dead {
		return fmt.Errorf("requeue job %.64q: it is not dead: %w", id, ErrUnknownJob)
	}
	j.status.Attempts, j.status.Stalls, j.status.Reason, j.status.Cancel = 0, 0, "", ""
	j.status.Job.Passed = nil
	m.makeReady(j)
	return nil
}

func (m *Memory) find(ctx context.Context, what, id string) (*memoryJob, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j := m.jobs[id]
	if j == nil {
		return nil, fmt.Errorf("%s job %.64q: %w", what, id, ErrUnknownJob)
	}
	return j, nil
}

// A memoryClaim is a delivery of a Memory.
type memoryClaim struct {
	memory *Memory
	job    *memoryJob
	number int64
	handed Job
}

// Job implements [Delivery].
func (c *memoryClaim) Job() Job { return c.handed }

// Lease implements [Delivery].
func (c *memoryClaim) Lease() time.Duration { return c.memory.Lease }

// Extend implements [Delivery].
func (c *memoryClaim) Extend(ctx context.Context) (cancel bool, err error) {
	err = c.change(ctx, func(m *Memory, j *memoryJob) {
		j.lease = time.Now().Add(m.Lease)
		cancel = j.status.Cancel == CancelRequested
	})
	return cancel, err
}

// Done implements [Delivery].
func (c *memoryClaim) Done(ctx context.Context, rec *record.Record) error {
	return c.change(ctx, func(m *Memory, j *memoryJob) {
		m.end(j, j.ended(rec))
	})
}

// ended returns what a run that ended with a record answers to a request to
// cancel it.
func (j *memoryJob) ended(rec *record.Record) CancelAnswer {
	switch {
	case j.status.Cancel == "":
		return ""
	case rec != nil && rec.Reason == reasonCancel:
		return CancelStopped
	}
	return CancelTooLate
}

// Retry implements [Delivery].
func (c *memoryClaim) Retry(ctx context.Context, after time.Duration, rec *record.Record) error {
	return c.change(ctx, func(m *Memory, j *memoryJob) {
		j.status.Attempts++
		m.comeBack(j, time.Now().Add(after))
	})
}

// Defer implements [Delivery].
func (c *memoryClaim) Defer(ctx context.Context, until time.Time, notHost string) error {
	return c.change(ctx, func(m *Memory, j *memoryJob) {
		if notHost != "" {
			j.status.Job.Passed = append(j.status.Job.Passed, notHost)
			j.status.Job.Passed = j.status.Job.Passed[max(0, len(j.status.Job.Passed)-maxPassed):]
			j.skipEnds = until.Add(passFor)
		}
		m.comeBack(j, until)
	})
}

// comeBack makes a job due again, unless somebody asked for its cancel.
func (m *Memory) comeBack(j *memoryJob, due time.Time) {
	if j.status.Cancel == CancelRequested {
		m.end(j, CancelRemoved)
		return
	}
	m.makeDue(j, due)
}

// Dead implements [Delivery].
func (c *memoryClaim) Dead(ctx context.Context, reason exit.Reason, rec *record.Record) error {
	return c.change(ctx, func(m *Memory, j *memoryJob) {
		answer := j.ended(rec)
		m.unplace(j)
		j.status.Attempts++
		j.status.State, j.status.Reason, j.status.Cancel = Dead, reason, answer
		j.over = time.Now()
		j.place = m.dead.PushBack(j)
	})
}

// change calls f while the claim holds.
func (c *memoryClaim) change(ctx context.Context, f func(*Memory, *memoryJob)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m, j := c.memory, c.job
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake(time.Now()) // the lease may have ended with nobody looking
	if j.claim != c.number {
		return fmt.Errorf("job %.64q: %w", c.handed.ID, ErrLeaseLost)
	}
	f(m, j)
	return nil
}
