package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/internal/instance"
	"github.com/edgehero/dispatch/worker"
)

// The folders of a spool.
const (
	idsFolder       = "ids"
	readyFolder     = "ready"
	delayedFolder   = "delayed"
	claimsFolder    = "claims"
	deadFolder      = "dead"
	endedFolder     = "ended"
	instancesFolder = "instances"
	asideFolder     = "aside"

	sweepLock = "sweep.lock"
	// Prefixes of files in an instance's folder that are no claims.
	newPrefix = "new-"
	endPrefix = "end-"
)

// A Config says where a spool is and who works off it.
type Config struct {
	// Dir is the spool's folder, which is made when it is missing.
	Dir string
	// Host is this machine's name: jobs that only another host may run are left
	// alone. Defaults to "", which takes no job that is bound to a host.
	Host string
	// History is how many jobs that were settled or removed are still known.
	// Defaults to 4096.
	History int
	// Log takes what was found and repaired. Defaults to no log.
	Log *slog.Logger
}

// A Spool is a queue in a folder and its producer. Its methods are safe for
// concurrent use. A claim holds for as long as the process lives or until Close.
//
// All workers of a spool are on one machine, so that a Defer's notHost changes
// nothing, and the jobs' Passed is empty.
type Spool struct {
	config   Config
	instance *instance.File
	claims   string // this instance's folder
	backlog  backlog
	lastAt   atomic.Int64 // of the last job queued, to keep their order
	settled  atomic.Int64 // ends since the history was cut

	sweeping  sync.Mutex
	lastSweep time.Time
	stuck     sync.Map // what could not be set aside, by path

	step     func(string) // called at each step of a transition
	unsynced bool         // for the benchmark that says what syncing costs
}

var (
	_ worker.Queue    = (*Spool)(nil)
	_ worker.Producer = (*Spool)(nil)
)

// Open opens a spool, and makes it where there is none. It fails on a file system
// that can't keep its promises.
func Open(config Config) (*Spool, error) { return open(config, func(string) {}) }

func open(config Config, step func(string)) (*Spool, error) {
	s := &Spool{config: config, step: step}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open spool %.80q: %w", filepath.Base(config.Dir), bare(err))
	}
	return s, nil
}

func (s *Spool) open() (err error) {
	if s.config.Dir == "" {
		return errors.New("Dir: none is given")
	}
	if s.config.History < 0 {
		return fmt.Errorf("History: %d is negative", s.config.History)
	}
	if s.config.History == 0 {
		s.config.History = 4096
	}
	if s.config.Log == nil {
		s.config.Log = slog.New(slog.DiscardHandler)
	}
	if s.config.Dir, err = filepath.Abs(s.config.Dir); err != nil {
		return err
	}
	for _, folder := range []string{"", idsFolder, readyFolder, delayedFolder, claimsFolder, deadFolder, endedFolder, instancesFolder, asideFolder} {
		if err := os.MkdirAll(s.path(folder), 0o700); err != nil {
			return err
		}
	}
	s.backlog.ready.path, s.backlog.delayed.path = s.path(readyFolder), s.path(delayedFolder)
	s.settled.Store(rand.Int64N(historyCheck)) // short-lived processes cut it too

	s.instance, err = instance.New(s.path(instancesFolder), s.step, renameNew)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("its file system can't rename without replacing (%w); give a folder on a local one, such as ext4 or xfs", bare(err))
	}
	if err != nil {
		return err
	}
	s.step("open:placed")
	s.claims = s.path(claimsFolder, s.instance.ID)
	if err = os.Mkdir(s.claims, 0o700); err == nil {
		err = errors.Join(s.sync(s.path(claimsFolder)), s.sync(s.config.Dir))
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.step("open:done")
	return nil
}

// Close gives the spool up. A claim that is still held comes back with its stalls
// raised, once another process sweeps. Methods must not be called after Close.
func (s *Spool) Close() error {
	err := os.Remove(s.claims)
	left := errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
	if left || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, s.instance.Close(left)); err != nil {
		return fmt.Errorf("close spool: %w", bare(err))
	}
	return nil
}

func (s *Spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.config.Dir}, parts...)...)
}

// move renames a job's file, which is its change of state, and makes that last.
// It never replaces a file. Where only the sync failed the error is a syncError.
func (s *Spool) move(from, to string) error {
	if err := renameNew(from, to); err != nil {
		return err
	}
	s.step("move:renamed")
	if err := s.sync(filepath.Dir(to)); err != nil {
		return &syncError{err}
	}
	return nil
}

// A syncError says that a change was made but may not outlive a power cut.
type syncError struct{ err error }

func (e *syncError) Error() string { return "sync the folder: " + bare(e.err).Error() }
func (e *syncError) Unwrap() error { return e.err }

// sync makes the names in a folder last.
func (s *Spool) sync(folder string) error {
	if s.unsynced {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// queuedAt returns the instant for the name of a job that is queued now: later
// than that of any job this process queued before, also after the clock jumped
// back.
func (s *Spool) queuedAt() int64 {
	for {
		last := s.lastAt.Load()
		at := max(time.Now().UnixNano(), last+1)
		if s.lastAt.CompareAndSwap(last, at) {
			return at
		}
	}
}

// queue returns where a job that may be claimed at an instant goes to, and sets
// the instant in its name.
func (s *Spool) queue(n *name, due time.Time) (path string) {
	if !due.After(time.Now()) {
		n.at = s.queuedAt()
		return s.path(readyFolder, n.String())
	}
	n.at = due.UnixNano()
	if due.Year() > maxYear {
		n.at = time.Date(maxYear, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	return s.path(delayedFolder, n.String())
}

// maxYear is the last year whose every instant 63 bits of nanoseconds hold.
const maxYear = 2261

// setAside moves what does not belong where it lies out of the way, and says so
// once.
func (s *Spool) setAside(path, why string) {
	if _, known := s.stuck.Load(path); known {
		return
	}
	file := filepath.Base(path)
	log := s.config.Log.With("folder", filepath.Base(filepath.Dir(path)), "name", file, "reason", why)
	to := s.path(asideFolder, fmt.Sprintf("%d.%.200s", s.queuedAt(), file))
	err := s.move(path, to)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another process did it
	case err != nil && !errors.As(err, new(*syncError)):
		s.stuck.Store(path, true)
		log.Error("spool_set_aside_failed", "error", bare(err))
	default:
		log.Warn("spool_set_aside", "as", filepath.Base(to))
	}
}

// list returns the names of a folder's files in no order.
func list(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	files, err := f.Readdirnames(-1)
	return files, errors.Join(err, f.Close())
}

// names returns the names of the jobs in a folder, and sets aside what can't be
// one.
func (s *Spool) names(folder string) ([]name, error) {
	files, err := list(folder)
	if err != nil {
		return nil, err
	}
	names := make([]name, 0, len(files))
	for _, file := range files {
		n, ok := parseName(file)
		if !ok {
			s.setAside(filepath.Join(folder, file), "its name is not a job's")
			continue
		}
		names = append(names, n)
	}
	return names, nil
}

// bare returns an error of the file system without its path.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return fmt.Errorf("%s: %w", l.Op, l.Err)
	}
	return err
}

// sleep waits until ctx ends, the channel is closed or the time is over.
func sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
