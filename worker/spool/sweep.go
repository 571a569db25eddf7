package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/internal/instance"
	"github.com/edgehero/dispatch/worker"
)

// sweepEvery is how often a process that waits looks for instances that are gone.
const sweepEvery = time.Second

// sweepSometimes sweeps where the last time is long enough ago.
func (s *Spool) sweepSometimes() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	if time.Since(s.lastSweep) >= sweepEvery {
		s.sweepLocked()
	}
}

// sweep gives back what instances that are gone left behind.
func (s *Spool) sweep() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.sweepLocked()
}

func (s *Spool) sweepLocked() {
	s.lastSweep = time.Now()
	err := s.sweepAll()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		s.config.Log.Error("spool_sweep_failed", "error", bare(err))
	}
}

// sweepAll sweeps every instance that is gone. One process of the machine does so
// at a time; EWOULDBLOCK says that another one does.
func (s *Spool) sweepAll() error {
	lock, err := os.OpenFile(s.path(sweepLock), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	// Those whose folder is there first: a folder is made after its instance's
	// file and removed before it.
	var errs []error
	for _, folder := range []string{claimsFolder, instancesFolder} {
		files, err := list(s.path(folder))
		errs = append(errs, err)
		for _, file := range files {
			errs = append(errs, s.sweepEntry(folder, file))
		}
	}
	return errors.Join(errs...)
}

// sweepEntry looks at one entry of claims or instances.
func (s *Spool) sweepEntry(folder, file string) error {
	if !instance.IsID(file) && (folder == claimsFolder || !instance.IsTemp(file)) {
		s.setAside(s.path(folder, file), "its name is not an instance's")
		return nil
	}
	claims := s.path(claimsFolder, file) // none of an instance that was being made
	dead, err := instance.Take(s.path(instancesFolder), file)
	switch {
	case errors.Is(err, instance.ErrHeld):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return s.sweepInstance(claims) // without a file there is no owner
	case err != nil:
		return err
	}
	err = s.sweepInstance(claims)
	s.step("sweep:lock")
	return errors.Join(err, dead.Close(err != nil))
}

// sweepInstance gives back everything in the folder of an instance that is gone.
func (s *Spool) sweepInstance(claims string) error {
	files, err := list(claims)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		s.setAside(claims, "it is not a folder")
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, s.sweepFile(claims, file))
	}
	s.step("sweep:folder")
	return errors.Join(append(errs, gonePath(os.Remove(claims)))...)
}

func (s *Spool) sweepFile(claims, file string) error {
	path := filepath.Join(claims, file)
	digest, isNew := strings.CutPrefix(file, newPrefix)
	if isNew && isHex(digest, len(digestOf(""))) {
		return s.sweepSubmit(path, digest)
	}
	p, ok := placeOf(place{folder: claims, state: worker.Running}, file)
	switch {
	case !ok:
		s.setAside(path, "its name is not a claim's")
		return nil
	case p.state == worker.Settled:
		return gonePath(s.file(claims, p.name))
	}
	return s.sweepClaim(p)
}

// sweepClaim makes the job of a vanished worker ready, one stall richer.
func (s *Spool) sweepClaim(p place) error {
	n := p.name
	n.stalls = raise(n.stalls)
	s.step("sweep:claim")
	err := s.move(p.path(), s.queue(&n, time.Time{}))
	if errors.Is(err, fs.ErrNotExist) && n.cancel == "" {
		n.cancel, p.name.cancel = worker.CancelRequested, worker.CancelRequested // just now
		p.file = p.name.String()
		err = s.move(p.path(), s.queue(&n, time.Time{}))
	}
	if err == nil {
		s.config.Log.Warn("spool_claim_stalled", "name", n.digest, "stalls", n.stalls)
		s.backlog.announce()
	}
	return gonePath(err)
}

// sweepSubmit completes a submit whose job had its id, and takes back any other.
func (s *Spool) sweepSubmit(path, digest string) error {
	n := name{digest: digest}
	s.step("sweep:submit")
	id, err := os.Lstat(s.path(idsFolder, digest))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	job, info, jobErr := readJob(path, n)
	if err != nil || jobErr != nil || !os.SameFile(id, info) {
		if jobErr != nil && !isGarbage(jobErr) {
			return gonePath(jobErr)
		}
		return gonePath(os.Remove(path))
	}
	n.host = hostToken(job.Host)
	err = s.place(path, n, job)
	s.backlog.announce()
	return gonePath(err)
}

// gonePath returns nil for an error that says that the file is gone already.
func gonePath(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
