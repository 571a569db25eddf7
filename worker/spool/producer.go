package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/worker"
)

// Submit implements [worker.Producer]. When it returns nil the job outlives a
// power cut. After an error that is a failed sync the job may be there.
func (s *Spool) Submit(ctx context.Context, job worker.Job) error {
	err := ctx.Err()
	if err == nil {
		err = job.Check()
	}
	if err == nil {
		err = s.submit(job)
	}
	if err != nil {
		return fmt.Errorf("submit job %.64q: %w", job.ID, bare(err))
	}
	return nil
}

func (s *Spool) submit(job worker.Job) error {
	if job.Created.IsZero() {
		job.Created = time.Now()
	}
	n := name{host: hostToken(job.Host), digest: digestOf(job.ID)}
	id := s.path(idsFolder, n.digest)
	if err := s.idIsFree(id, n); err != nil {
		return err
	}
	path := filepath.Join(s.claims, newPrefix+n.digest)
	s.step("submit:start")
	err := s.writeJob(path, job)
	if errors.Is(err, fs.ErrExist) {
		return worker.ErrDuplicate // this process submits it at this instant
	}
	if err != nil {
		return err
	}
	s.step("submit:written")
	if err := os.Link(path, id); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = worker.ErrDuplicate
		}
		return errors.Join(err, os.Remove(path))
	}
	s.step("submit:linked")
	err = s.place(path, n, job)
	if err != nil && !isSync(err) {
		return errors.Join(err, os.Remove(id), os.Remove(path))
	}
	s.step("submit:placed")
	s.backlog.announce()
	return errors.Join(err, s.sync(s.path(idsFolder)))
}

// place makes a job that is written and has its id due.
func (s *Spool) place(path string, n name, job worker.Job) error {
	return s.move(path, s.queue(&n, time.Now().Add(job.Delay)))
}

// idIsFree returns ErrDuplicate while a job of that id is known.
func (s *Spool) idIsFree(id string, n name) error {
	for range 2 {
		info, err := os.Lstat(id)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink == 1 {
			// The job's file may have been removed by hand, or lost in a power
			// cut; or the spool is a copy that has no links.
			if _, err = s.findNow(n.digest); errors.Is(err, worker.ErrUnknownJob) {
				s.config.Log.Warn("spool_id_without_job", "name", n.digest)
				_ = os.Remove(id)
				continue
			}
		}
		s.sweep() // it may have ended just before its worker did
	}
	if _, err := os.Lstat(id); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return worker.ErrDuplicate
}

// A place is where the file of a job lies.
type place struct {
	folder string // whole
	file   string
	name   name
	state  worker.State
}

func (p place) path() string { return filepath.Join(p.folder, p.file) }

const (
	// findTries bounds the looks for a job that moves whenever it is looked for.
	findTries = 40
	findPause = 5 * time.Millisecond
)

// find returns where the job of an id is. It returns ErrUnknownJob.
func (s *Spool) find(ctx context.Context, id string) (place, error) {
	digest := digestOf(id)
	var found place
	var lookErr error
	for try := range findTries {
		if err := ctx.Err(); err != nil {
			return place{}, err
		}
		_, known := os.Lstat(s.path(idsFolder, digest))
		p, err := s.findNow(digest)
		if err == nil && p.state != worker.Settled {
			return p, nil
		}
		// While its id is taken there is a job, which moved past the look.
		if known != nil || err != nil && !errors.Is(err, worker.ErrUnknownJob) {
			return p, err
		}
		if try == findTries/2 {
			s.sweep() // whoever submitted it may have died
		}
		found, lookErr = p, err
		sleep(ctx, nil, findPause)
	}
	return found, lookErr
}

// findNow looks once for the job: for one that is under way, and else for the
// latest that ended.
func (s *Spool) findNow(digest string) (place, error) {
	instances, err := list(s.path(claimsFolder))
	if err != nil {
		return place{}, err
	}
	found := place{name: name{at: -1}}
	for _, look := range s.looks(instances) {
		files, err := list(look.folder)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue // swept, or no instance's
		}
		if err != nil {
			return place{}, err
		}
		for _, file := range files {
			p, ok := placeOf(look, file)
			if !ok || p.name.digest != digest {
				continue
			}
			if p.state != worker.Settled {
				return p, nil
			}
			if p.name.at > found.name.at {
				found = p
			}
		}
	}
	if found.file == "" {
		return place{}, worker.ErrUnknownJob
	}
	return found, nil
}

// looks returns the folders in which a job can be.
func (s *Spool) looks(instances []string) []place {
	looks := []place{
		{folder: s.path(readyFolder), state: worker.Waiting},
		{folder: s.path(delayedFolder), state: worker.Delayed},
	}
	for _, i := range instances {
		looks = append(looks, place{folder: s.path(claimsFolder, i), state: worker.Running})
	}
	return append(looks,
		place{folder: s.path(deadFolder), state: worker.Dead},
		place{folder: s.path(endedFolder), state: worker.Settled})
}

// placeOf returns the place of the job whose file it is.
func placeOf(folder place, file string) (place, bool) {
	p := folder
	p.file = file
	n, ok := parseName(file)
	if !ok && p.state == worker.Running && len(file) > len(endPrefix) && file[:len(endPrefix)] == endPrefix {
		p.state = worker.Settled
		n, ok = parseName(file[len(endPrefix):])
	}
	p.name = n
	return p, ok
}

// change looks for a job and calls f with its place, until no other process has
// moved it in between.
func (s *Spool) change(ctx context.Context, what, id string, f func(place) error) error {
	for range findTries {
		p, err := s.find(ctx, id)
		if err == nil {
			err = f(p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s job %.64q: %w", what, id, bare(err))
		}
		return nil
	}
	return fmt.Errorf("%s job %.64q: it moved each time; try again", what, id)
}

// Cancel implements [worker.Producer].
func (s *Spool) Cancel(ctx context.Context, id string) (answer worker.CancelAnswer, err error) {
	err = s.change(ctx, "cancel", id, func(p place) error {
		answer, err = s.cancel(p)
		return err
	})
	if err != nil {
		return "", err
	}
	return answer, nil
}

func (s *Spool) cancel(p place) (worker.CancelAnswer, error) {
	n := p.name
	waits := p.state == worker.Waiting || p.state == worker.Delayed
	if n.cancel != "" {
		return n.cancel, nil
	}
	to := p.folder
	switch {
	case waits && n.stalls == 0:
		return worker.CancelRemoved, s.remove(p)
	case waits:
		// Only a worker can stop what the vanished one left running.
		n.cancel, n.at = worker.CancelRequested, s.queuedAt()
		to = s.path(readyFolder)
	case p.state == worker.Running:
		n.cancel = worker.CancelRequested
	default:
		n.cancel = worker.CancelTooLate
		if p.file != p.name.String() {
			return n.cancel, nil // it is being filed
		}
	}
	s.step("cancel:start")
	if err := s.move(p.path(), filepath.Join(to, n.String())); err != nil {
		return "", err
	}
	s.step("cancel:done")
	s.backlog.announce()
	return n.cancel, nil
}

// remove ends a job that waits.
func (s *Spool) remove(p place) error {
	n := p.name
	n.cancel, n.at = worker.CancelRemoved, s.queuedAt()
	s.step("remove:start")
	return s.end(p.path(), n)
}

// Status implements [worker.Producer]. It does not know a running job's host.
func (s *Spool) Status(ctx context.Context, id string) (status worker.Status, err error) {
	err = s.change(ctx, "ask for", id, func(p place) error {
		job, err := p.job()
		if err != nil {
			return err
		}
		n := p.name
		status = worker.Status{
			State: p.state, Job: job, Reason: n.reason, Cancel: n.cancel, Attempts: n.attempts, Stalls: n.stalls,
		}
		if p.state == worker.Delayed {
			status.Due = time.Unix(0, n.at)
		}
		return nil
	})
	return status, err
}

// job reads the job, without the data of one that has ended.
func (p place) job() (worker.Job, error) {
	if p.state != worker.Settled {
		job, _, err := readJob(p.path(), p.name)
		if _, gone := os.Lstat(p.path()); isGarbage(err) && gone != nil {
			err = gone // it ended while it was read, and lost its data
		}
		return job, err
	}
	h, rest, _, err := openJob(p.path(), p.name)
	if err != nil {
		return worker.Job{}, err
	}
	h.Job.Attempts, h.Job.Stalls = p.name.attempts, p.name.stalls
	return h.Job, rest.Close()
}

// Dead implements [worker.Producer].
func (s *Spool) Dead(ctx context.Context) iter.Seq2[worker.DeadJob, error] {
	return func(yield func(worker.DeadJob, error) bool) {
		names, err := s.names(s.path(deadFolder))
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(worker.DeadJob{}, fmt.Errorf("list the dead jobs: %w", bare(err)))
			return
		}
		slices.SortFunc(names, func(a, b name) int { return cmp.Compare(a.at, b.at) })
		for _, n := range names {
			dead, err := s.deadJob(n)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // requeued meanwhile
			}
			if err != nil {
				dead, err = worker.DeadJob{}, fmt.Errorf("read a dead job: %w", bare(err))
			}
			if !yield(dead, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (s *Spool) deadJob(n name) (worker.DeadJob, error) {
	path := s.path(deadFolder, n.String())
	job, _, err := readJob(path, n)
	if isGarbage(err) {
		s.setAside(path, err.Error())
		return worker.DeadJob{}, fs.ErrNotExist
	}
	return worker.DeadJob{Job: job, Reason: n.reason, At: time.Unix(0, n.at)}, err
}

// Requeue implements [worker.Producer].
func (s *Spool) Requeue(ctx context.Context, id string) error {
	return s.change(ctx, "requeue", id, func(p place) error {
		if p.state != worker.Dead {
			return fmt.Errorf("it is not dead: %w", worker.ErrUnknownJob)
		}
		n := name{host: p.name.host, digest: p.name.digest}
		s.step("requeue:start")
		err := s.move(p.path(), s.queue(&n, time.Time{}))
		s.step("requeue:done")
		s.backlog.announce()
		return err
	})
}
