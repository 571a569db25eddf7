package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// Next implements [worker.Queue].
func (s *Spool) Next(ctx context.Context) (worker.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.sweepSometimes()
		wake := s.backlog.wake()
		n, from, again, err := s.candidate(time.Now())
		if err != nil {
			return nil, fmt.Errorf("look for a job: %w", bare(err))
		}
		if from == "" {
			sleep(ctx, wake, again)
			continue
		}
		c, err := s.claim(n, from)
		if err != nil {
			return nil, fmt.Errorf("claim a job: %w", bare(err))
		}
		if c != nil {
			return c, nil
		}
	}
}

// claim takes a job for this process. It returns nil when there is nothing to
// take: another process has the job, or the file is none.
func (s *Spool) claim(n name, from string) (*claim, error) {
	path := filepath.Join(from, n.String())
	c := &claim{spool: s, name: n}
	s.step("claim:start")
	err := s.move(path, c.path())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Lstat(s.claims) // without the folder no claim would ever pass
		return nil, err
	}
	if errors.Is(err, fs.ErrExist) {
		s.setAside(path, "a job of that name is claimed already")
		return nil, nil
	}
	var info os.FileInfo
	if err == nil {
		c.job, info, err = readJob(c.path(), n)
	}
	if err == nil {
		s.step("claim:read")
		err = s.checkID(c.path(), n, info)
	}
	if isGarbage(err) {
		why := err.Error()
		if err := s.freeID(c.path(), n); err != nil {
			why += "; its id stays taken: " + bare(err).Error()
		}
		s.setAside(c.path(), why)
		return nil, nil
	}
	if err != nil {
		// It must not stay claimed with nobody to run it.
		return nil, errors.Join(err, s.move(c.path(), path))
	}
	s.step("claim:done")
	return c, nil
}

// checkID makes sure that the claimed file is the one that its id stands for.
func (s *Spool) checkID(path string, n name, info os.FileInfo) error {
	id := s.path(idsFolder, n.digest)
	for range 2 {
		of, err := os.Lstat(id)
		if err == nil && os.SameFile(of, info) {
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			// A power cut can have taken a link that was made with the file.
			if err = os.Link(path, id); errors.Is(err, fs.ErrExist) {
				continue
			}
			return err
		}
		if err != nil {
			return err
		}
		same, err := sameJob(path, id, n)
		if err == nil && !same {
			err = garbage("its id stands for another job's file")
		}
		return err
	}
	return garbage("its id was taken by another job meanwhile")
}

// A claim is a delivery of a spool.
type claim struct {
	spool *Spool
	job   worker.Job

	mu    sync.Mutex
	name  name
	over  bool
	ended bool // the end is decided but not filed yet
}

var _ worker.Delivery = (*claim)(nil)

// Job implements [worker.Delivery].
func (c *claim) Job() worker.Job { return c.job }

// Lease implements [worker.Delivery]: the claim holds as long as the process.
func (c *claim) Lease() time.Duration { return 0 }

// path is the claim's file. The caller holds mu.
func (c *claim) path() string { return filepath.Join(c.spool.claims, c.name.String()) }

// Extend implements [worker.Delivery].
func (c *claim) Extend(ctx context.Context) (cancel bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.ended {
		return false, c.lost()
	}
	err = c.withName(func() error {
		_, err := os.Lstat(c.path())
		return err
	})
	if err != nil {
		return false, c.failed("extend", err)
	}
	return c.name.cancel == worker.CancelRequested, nil
}

// Done implements [worker.Delivery].
func (c *claim) Done(ctx context.Context, rec *record.Record) error {
	return c.settle(ctx, "settle", func() error { return c.end(c.answer(rec)) })
}

// Retry implements [worker.Delivery].
func (c *claim) Retry(ctx context.Context, after time.Duration, rec *record.Record) error {
	due := time.Now().Add(after)
	return c.settle(ctx, "retry", func() error { return c.putBack(due, raise(c.name.attempts)) })
}

// Defer implements [worker.Delivery].
func (c *claim) Defer(ctx context.Context, until time.Time, notHost string) error {
	return c.settle(ctx, "defer", func() error { return c.putBack(until, c.name.attempts) })
}

// Dead implements [worker.Delivery].
func (c *claim) Dead(ctx context.Context, reason exit.Reason, rec *record.Record) error {
	return c.settle(ctx, "give up", func() error {
		n := c.name
		n.at, n.attempts, n.reason, n.cancel = c.spool.queuedAt(), raise(n.attempts), reason, c.answer(rec)
		return c.spool.move(c.path(), c.spool.path(deadFolder, n.String()))
	})
}

// answer returns what a run that ended with a record answers to whoever asked
// for its cancel.
func (c *claim) answer(rec *record.Record) worker.CancelAnswer {
	switch {
	case c.name.cancel == "":
		return ""
	case rec != nil && rec.Reason == record.OperatorCancel:
		return worker.CancelStopped
	}
	return worker.CancelTooLate
}

// putBack makes the job due again, unless somebody asked for its cancel.
func (c *claim) putBack(due time.Time, attempts int) error {
	n := c.name
	n.attempts = attempts
	if n.cancel != "" {
		return c.end(worker.CancelRemoved)
	}
	err := c.spool.move(c.path(), c.spool.queue(&n, due))
	c.spool.backlog.announce()
	return err
}

// end ends the job. From its first step on nothing else can become of it.
func (c *claim) end(answer worker.CancelAnswer) error {
	n := c.name
	n.cancel, n.at = answer, c.spool.queuedAt()
	if err := c.spool.move(c.path(), filepath.Join(c.spool.claims, endPrefix+n.String())); err != nil && !isSync(err) {
		return err
	}
	c.name, c.ended = n, true
	return c.spool.file(c.spool.claims, n)
}

// settle ends the claim with f, which moves its file.
func (c *claim) settle(ctx context.Context, what string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.lost()
	}
	c.spool.step("settle:start")
	if c.ended {
		f = func() error { return c.spool.file(c.spool.claims, c.name) }
	}
	if err := c.withName(f); err != nil && !isSync(err) {
		return c.failed(what, err)
	}
	// A change that a power cut takes back gives the job to the next sweep, and
	// its record settles it then.
	c.over = true
	c.spool.step("settle:done")
	return nil
}

// withName calls f, and again when the claim has got another name because
// somebody asked for a cancel.
func (c *claim) withName(f func() error) error {
	err := f()
	if errors.Is(err, fs.ErrNotExist) && c.name.cancel == "" && !c.ended {
		c.name.cancel = worker.CancelRequested
		err = f()
	}
	return err
}

func (c *claim) failed(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !c.ended {
		c.over = true
		return c.lost()
	}
	return fmt.Errorf("%s job %.64q: %w", what, c.job.ID, bare(err))
}

func (c *claim) lost() error {
	return fmt.Errorf("job %.64q: %w", c.job.ID, worker.ErrLeaseLost)
}

func isSync(err error) bool { return errors.As(err, new(*syncError)) }
