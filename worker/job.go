package worker

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/record"
)

// maxPause is the longest that a pause is taken for; then it is asked for again.
const maxPause = 24 * time.Hour

// A pickup is one delivery's life on this host.
type pickup struct {
	w        *Worker
	ph       phases
	delivery Delivery
	job      Job
	attempt  int
	log      *slog.Logger

	// ctx ends when the job must stop; its cause says why. settling ends when
	// nothing more may be written.
	ctx      context.Context
	stop     context.CancelCauseFunc
	settling context.Context
	// keepThroughDrain lets the first signal to stop pass the job by; false says
	// that it came before.
	keepThroughDrain func() bool

	lost    atomic.Bool // the lease is another worker's
	running atomic.Bool // it is admitted
	telling atomic.Bool // the queue is being told how the pickup ends

	// Found out step by step.
	description Description
	previous    *record.Record // the record that this run replaces
	size        jobsize.Size
	host        host
	image       container.Image
	preparation Preparation
	picked      time.Time
	admitted    time.Time        // zero before
	capacity    *record.Capacity // nil before
	result      container.Result
	orphan      *orphan

	holdsBack []func() // what release gives back, last taken first

	next Delivery // the one that settling this one claimed
}

// newPickup returns the life of a delivery that has not begun.
func (w *Worker) newPickup(ph phases, d Delivery) *pickup {
	job := d.Job()
	p := &pickup{w: w, ph: ph, delivery: d, job: job, attempt: job.Attempts + 1, settling: ph.settling, picked: w.config.Now()}
	p.log = w.log.With("job", job.ID, "attempt", p.attempt)
	p.ctx, p.stop = context.WithCancelCause(ph.running)
	// Until it is admitted, the first signal to stop gives the job back.
	p.keepThroughDrain = context.AfterFunc(ph.taking, func() { p.stop(container.ErrShutdown) })
	return p
}

// seen returns the pickup as hooks see it.
func (p *pickup) seen() Pickup {
	return Pickup{
		Job: p.job, Attempt: p.attempt, Description: p.description,
		Size: p.size, Image: p.image, Dir: p.preparation.Dir,
	}
}

func (p *pickup) event(kind EventKind) Event {
	return Event{Kind: kind, Job: p.job.ID, Name: p.job.Name, Attempt: p.attempt, At: p.w.config.Now()}
}

// step names the next step of the job's life to the tests that end the process
// there.
func (p *pickup) step(name string) { p.w.config.step(name) }

// steps are a job's life in order, up to its end. Each is a gate: it returns nil
// to go on, else how the pickup ends.
var steps = []struct {
	name string
	do   func(*pickup) *ending
}{
	{"id", (*pickup).checkID},
	{"leftovers", (*pickup).stopLeftovers},
	{"settled", (*pickup).findSettled},
	{"earlier", (*pickup).checkAttempts},
	{"describe", (*pickup).describe},
	{"pause", (*pickup).pause},
	{"size", (*pickup).resolveSize},
	{"image", (*pickup).findImage},
	{"prepare", (*pickup).prepare},
	{"budget", (*pickup).waitInLine},
	{"admit", (*pickup).admit},
	{"run", (*pickup).run},
}

// live is a job's whole life: the steps up to its end, then record, notify and
// settle, then the release of everything it took.
func (p *pickup) live() {
	defer p.stop(nil)
	defer p.keepThroughDrain()
	defer p.release()
	defer p.startRenewing()()
	defer p.survive()
	p.log.Info("job_picked", "stalls", p.job.Stalls)
	p.w.observe(p.event(JobPicked))
	for _, s := range steps {
		p.step(s.name)
		end := p.stopped()
		if end == nil {
			end = s.do(p)
		}
		if end != nil {
			p.finish(*end)
			return
		}
	}
}

// cleanUp gives back what a Prepare hook took.
func (w *Worker) cleanUp(made Preparation) {
	if made.Cleanup == nil {
		return
	}
	_, err := call(context.Background(), &w.hooks, "Cleanup", w.config.PrepareLimit, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, made.Cleanup(ctx)
	}, nil)
	if err != nil {
		w.log.Error("cleanup_failed", "error", err)
	}
}

// survive ends an attempt that a panic of a queue, a runtime or a store cut
// short. The job is tried again.
func (p *pickup) survive() {
	value := recover()
	if value == nil {
		return
	}
	p.w.hooks.panicked("none", value)
	p.tell("retry", func(ctx context.Context) error {
		return p.delivery.Retry(ctx, p.w.config.Backoff.after(p.attempt, p.w.config.random()), nil)
	})
}

// stopped ends a pickup whose context has ended before its run.
func (p *pickup) stopped() *ending {
	cause := context.Cause(p.ctx)
	switch {
	case cause == nil:
		return nil
	case errors.Is(cause, container.ErrCancelled):
		return refuse(reasonCancel, "")
	}
	return handBack(p.w.config.Now(), "")
}

// checkID gives up a job under whose id no record can be kept.
func (p *pickup) checkID() *ending {
	_, err := record.FileName(p.job.ID)
	if err == nil && utf8.ValidString(p.job.ID) {
		return nil
	}
	p.log.Error("job_id_refused", "error", err)
	end := giveUp(reasonWorkerError)
	end.nameless = true
	return end
}

// stopLeftovers stops whatever an earlier pickup of this job left running on
// this host.
func (p *pickup) stopLeftovers() *ending {
	err := p.w.stopAll(p.ctx, container.Labels{Host: p.w.config.Host, Job: p.job.ID}, "")
	if err != nil {
		return p.notStarted("leftovers_failed", err)
	}
	return nil
}

// findSettled settles a delivery that was made before from its record, if there
// is one. It also keeps the record that this run will replace.
func (p *pickup) findSettled() *ending {
	redelivered := p.job.Stalls > 0 || p.job.MayHaveRun
	if !redelivered && p.job.Attempts == 0 {
		return nil
	}
	question := record.Question{JobID: p.job.ID, Attempt: p.attempt, Created: p.job.Created}
	for _, read := range []func() (*record.Record, error){p.localRecord, p.mirroredRecord} {
		rec, err := read()
		if err != nil {
			// Without an answer the job may neither run again nor be settled.
			p.log.Error("record_read_failed", "error", err)
			return handBack(p.w.config.Now().Add(unreadPause), "")
		}
		if redelivered && p.settledBy(rec, question) {
			return &ending{settled: rec}
		}
		if rec != nil && rec.Attempt != nil && record.OfThisJob(rec, record.Question{JobID: p.job.ID, Attempt: int(*rec.Attempt), Created: p.job.Created}) {
			p.previous = record.Newer(p.previous, rec)
		}
	}
	return nil
}

// settledBy reports whether a record settles the job. A server that may have
// forgotten deliveries may have forgotten whole attempts.
func (p *pickup) settledBy(rec *record.Record, q record.Question) bool {
	if p.job.MayHaveRun && rec != nil && rec.Attempt != nil {
		q.Attempt = max(q.Attempt, int(min(*rec.Attempt, math.MaxInt32)))
	}
	return record.Verdict(rec, q) == record.Settles
}

func (p *pickup) localRecord() (*record.Record, error) {
	if p.w.config.Records == nil {
		return nil, nil
	}
	rec, err := p.w.config.Records.Read(p.job.ID)
	var torn *record.UnparseableError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &torn):
		p.log.Warn("record_unparseable", "error", err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &rec, nil
}

func (p *pickup) mirroredRecord() (*record.Record, error) {
	if p.w.config.Mirror == nil {
		return nil, nil
	}
	return p.w.config.Mirror.Record(p.ctx, p.job.ID)
}

// checkAttempts gives up a job that took too many workers with it, or that has
// no attempt left. Neither may reach a hook: it could be what kills the worker.
func (p *pickup) checkAttempts() *ending {
	switch {
	case p.job.Stalls > p.w.config.Stalls:
		return giveUp(reasonStalled)
	case p.job.Attempts >= p.w.config.Attempts:
		return giveUp(reasonAttemptsSpent)
	}
	return nil
}

// describe asks what the job is.
func (p *pickup) describe() *ending {
	hook := p.w.config.Hooks.Describe
	if hook == nil {
		return nil
	}
	d, err := call(p.ctx, &p.w.hooks, "Describe", p.w.config.HookLimit, func(ctx context.Context) (Description, error) {
		return hook(ctx, p.job)
	}, nil)
	if err != nil {
		return p.refusedOrFailed("describe_failed", err)
	}
	p.description = d
	return nil
}

// pause lets the embedder put the job off.
func (p *pickup) pause() *ending {
	hook := p.w.config.Hooks.Pause
	if hook == nil {
		return nil
	}
	until, err := call(p.ctx, &p.w.hooks, "Pause", p.w.config.HookLimit, func(ctx context.Context) (time.Time, error) {
		return hook(ctx, p.seen())
	}, nil)
	if err != nil {
		return p.failed(reasonWorkerError, "pause_failed", err)
	}
	now := p.w.config.Now()
	if !until.After(now) {
		return nil
	}
	if latest := now.Add(maxPause); until.After(latest) {
		until = latest
	}
	p.log.Info("job_paused", "until", until)
	return handBack(until, "")
}

// resolveSize finds the job's size and passes on or refuses a job that never
// fits this host.
func (p *pickup) resolveSize() *ending {
	size, err := jobsize.Resolve(p.job.Size, p.w.config.DefaultSize)
	if err != nil {
		p.log.Error("size_refused", "error", err)
		return refuse(reasonPrepare, "bad-size")
	}
	p.size = size
	p.host = p.w.hostNow(p.ctx)
	misfit, fits := p.host.budget.Fits(size, p.description.SharePercent)
	if fits {
		return nil
	}
	if p.offerElsewhere() {
		p.log.Info("job_passed_on", "error", misfit, "passed", len(p.job.Passed)+1)
		return handBack(p.w.config.Now().Add(passFor), p.w.config.Host)
	}
	p.log.Warn("job_never_fits", "error", misfit)
	end := refuse(exit.Reason(misfit.Reason), "")
	end.misfit = true
	return end
}

// findImage looks for the job's image.
func (p *pickup) findImage() *ending {
	if p.description.Image == "" {
		return nil
	}
	image, err := p.w.config.Runtime.Image(p.ctx, p.description.Image)
	switch {
	case errors.Is(err, container.ErrImageMissing):
		p.log.Warn("image_missing", "error", err)
		return refuse(reasonImageMissing, "")
	case err != nil:
		return p.notStarted("image_failed", err)
	}
	p.image = image
	return nil
}

// prepare lets the embedder make the workspace.
func (p *pickup) prepare() *ending {
	hook := p.w.config.Hooks.Prepare
	if hook == nil {
		return nil
	}
	made, err := call(p.ctx, &p.w.hooks, "Prepare", p.w.config.PrepareLimit, func(ctx context.Context) (Preparation, error) {
		return hook(ctx, p.seen())
	}, p.w.cleanUp)
	p.onRelease(func() { p.w.cleanUp(made) })
	if err != nil {
		return p.refusedOrFailed("prepare_failed", err)
	}
	p.preparation = made
	return nil
}

// waitInLine waits for the job's share of the host. Its slot it has since it was
// claimed: no more is claimed than there are slots.
func (p *pickup) waitInLine() *ending {
	release, err := p.w.ledger.acquire(p.ctx, p.size)
	if err != nil {
		return p.stopped()
	}
	p.onRelease(func() {
		if p.orphan == nil {
			release()
			return
		}
		// What may still run keeps its share.
		leave := p.enterLive(true)
		p.w.startWatch(p.ph, p.orphan, func() { leave(); release() })
	})
	return nil
}

// admit marks the one instant at which the job has everything. From here on the
// first signal to stop lets it go on.
func (p *pickup) admit() *ending {
	if !p.keepThroughDrain() {
		return p.stopped()
	}
	p.running.Store(true)
	p.admitted = p.w.config.Now()
	p.capacity = p.host.capacity(p.w.config.Slots)
	p.onRelease(p.enterLive(false))
	p.log.Info("job_started", "mem_mib", int64(p.size.Mem), "cpu_centi", int64(p.size.CPU))
	p.w.observe(p.event(JobStarted))
	return nil
}

// enterLive lists the job as one that runs, until the returned function is
// called.
func (p *pickup) enterLive(orphan bool) (leave func()) {
	if p.w.config.Live == nil {
		return func() {}
	}
	return p.w.config.Live.Add(livejobs.Running{
		ID: p.job.ID, Project: p.description.Record.Project, Mem: p.size.Mem, CPU: p.size.CPU, At: p.admitted, Orphan: orphan,
	})
}

// onRelease adds something to what release gives back.
func (p *pickup) onRelease(giveBack func()) { p.holdsBack = append(p.holdsBack, giveBack) }

// release gives back everything that was taken for the job, once, the last taken
// first.
func (p *pickup) release() {
	p.step("release")
	held := p.holdsBack
	p.holdsBack = nil
	for _, giveBack := range slices.Backward(held) {
		giveBack()
	}
}
