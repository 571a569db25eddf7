package worker

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
)

// clientFailed is the code of a run that never started when the runtime gives
// one that a job could have ended with.
const clientFailed = 125

// run runs the container to its end and classifies it.
func (p *pickup) run() *ending {
	limit := p.preparation.TimeLimit
	if limit <= 0 {
		limit = p.w.config.TimeLimit
	}
	ctx, cancel := context.WithTimeoutCause(p.ctx, limit, container.ErrTimeout)
	defer cancel()
	spec := p.spec()
	output, closeOutput := p.openOutput()
	result, err := p.w.config.Runtime.Run(ctx, spec, container.IO{
		Key:    p.key(spec),
		Stdin:  p.preparation.Input,
		Log:    output,
		Parser: p.w.config.Parser,
	})
	closeOutput()
	switch {
	case errors.Is(err, container.ErrImageMissing):
		return refuse(reasonImageMissing, "")
	case errors.Is(err, container.ErrSpec):
		p.log.Warn("spec_refused", "error", err)
		return refuse(reasonPrepare, "bad-spec")
	case errors.Is(err, container.ErrUnavailable):
		return p.notStarted("run_failed", err)
	case err != nil:
		return p.failed(reasonWorkerError, "run_failed", err)
	}
	p.step("classify")
	return p.classify(spec, result)
}

// spec returns what the runtime is asked for: what Prepare said, with what the
// worker decides.
func (p *pickup) spec() container.Spec {
	s := p.preparation.Spec
	if s.Name == "" {
		s.Name = container.NewName("dispatch-", p.job.ID, p.attempt)
	}
	s.Image = p.description.Image
	s.Job, s.Attempt = p.job.ID, p.attempt
	s.Instance, s.Host = p.w.config.Instance, p.w.config.Host
	s.Size, s.CPUs = p.size, p.host.ceiling()
	return s
}

// key returns a fresh key for a run that can sign with it: one under the
// worker's own supervisor, which the process runtime always has, or of an image
// that says so. Another's input must not begin with a key.
func (p *pickup) key(spec container.Spec) exit.Key {
	if spec.Image == "" || len(spec.Supervisor) > 0 || p.image.Can(container.ExitAuth) {
		return exit.NewKey()
	}
	return exit.Key{}
}

// classify says what the run's end means for the job.
func (p *pickup) classify(spec container.Spec, result container.Result) *ending {
	if result.NeverStarted && result.Code >= 0 && result.Code <= 2 {
		result.Code = clientFailed
	}
	p.result = result
	if result.Orphan || result.Detached {
		p.orphaned(spec)
	}
	o := Classify(result, p.preparation.RetryCodes...)
	if o.HostOOM {
		limit, _ := result.MemoryLimit.Value()
		p.log.Warn("oom_report_below_limit", "mem_peak", *result.Line.Resources.MemPeak, "mem_limit", limit)
	}
	if o.HandBack {
		return handBack(p.w.config.Now(), "")
	}
	p.artifacts(o)
	return &ending{outcome: o, ran: true}
}

// orphaned notes that the run's container may still run.
func (p *pickup) orphaned(spec container.Spec) {
	p.orphan = &orphan{
		labels: container.Labels{Instance: spec.Instance, Host: spec.Host, Job: spec.Job, Attempt: strconv.Itoa(spec.Attempt)},
		name:   spec.Name,
	}
	p.log.Warn("orphan", "meaning", "the container may still run; it keeps its share of the host until the runtime says that it is gone")
	p.w.observe(p.event(JobOrphan))
}

// openOutput returns what takes the job's output besides the tail, nil when
// nothing does, and a function that ends it.
func (p *pickup) openOutput() (io.Writer, func()) {
	var writers []io.Writer
	var closers []func()
	if open := p.w.config.OpenLog; open != nil && !p.preparation.NoLog {
		if log := open(p.job.ID); log != nil {
			writers = append(writers, log)
			closers = append(closers, func() {
				if err := log.Close(); err != nil {
					p.log.Warn("run_log_failed", "error", err)
				}
			})
		}
	}
	if p.w.config.Hooks.Output != nil {
		lines := p.newLines()
		writers = append(writers, lines)
		closers = append(closers, lines.close)
	}
	if len(writers) == 0 {
		return nil, func() {}
	}
	return multiWriter(writers), func() {
		for _, end := range closers {
			end()
		}
	}
}

// A multiWriter passes what it takes to every writer, whatever the others say.
type multiWriter []io.Writer

func (m multiWriter) Write(b []byte) (int, error) {
	var errs []error
	for _, w := range m {
		if _, err := w.Write(b); err != nil {
			errs = append(errs, err)
		}
	}
	return len(b), errors.Join(errs...)
}
