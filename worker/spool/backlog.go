package spool

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// poll is how often a process that waits looks for another's jobs.
	poll = 50 * time.Millisecond
	// coarse is how far apart two changes of a folder may be without another
	// modification time: file systems count whole seconds at worst.
	coarse = 2 * time.Second
	// listShare bounds the share of time that goes into listing a folder, as one
	// in so many: a folder whose names nobody here may claim can be long.
	listShare = 10
)

// A backlog is what this process knows of the jobs that may be claimed.
type backlog struct {
	mu      sync.Mutex
	ready   listing
	delayed listing
	changed chan struct{}
}

// A listing is the rest of a folder's sorted names: those not yet tried.
type listing struct {
	path     string
	names    []name
	modified time.Time // the folder's, before it was read
	read     time.Time
	took     time.Duration
}

// candidate takes the next name off the backlog. Where there is none, it says
// when to look again.
func (s *Spool) candidate(now time.Time) (n name, from string, again time.Duration, err error) {
	b := &s.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	for range 2 {
		if l := b.first(now.UnixNano()); l != nil {
			n, l.names = l.names[0], l.names[1:]
			return n, l.path, 0, nil
		}
		for _, l := range []*listing{&b.ready, &b.delayed} {
			if err := s.refresh(l); err != nil {
				return name{}, "", 0, err
			}
		}
	}
	again = poll
	if len(b.delayed.names) > 0 {
		again = min(again, time.Duration(b.delayed.names[0].at-now.UnixNano()))
	}
	return name{}, "", max(again, time.Millisecond), nil
}

// first returns the listing whose first job was to run first, nil when no job
// may be claimed.
func (b *backlog) first(now int64) *listing {
	delayed := len(b.delayed.names) > 0 && b.delayed.names[0].at <= now
	switch {
	case len(b.ready.names) == 0 && !delayed:
		return nil
	case len(b.ready.names) == 0, delayed && b.delayed.names[0].at < b.ready.names[0].at:
		return &b.delayed
	}
	return &b.ready
}

// refresh lists a folder again where it may have changed since.
func (s *Spool) refresh(l *listing) error {
	start := time.Now()
	if start.Sub(l.read) < listShare*l.took {
		return nil
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	// A modification time just before the listing may hide a later change.
	if info.ModTime().Equal(l.modified) && l.read.Sub(l.modified) > coarse {
		return nil
	}
	names, err := s.names(l.path)
	if err != nil {
		return err
	}
	host := hostToken(s.config.Host)
	names = slices.DeleteFunc(names, func(n name) bool { return n.host != "" && n.host != host })
	slices.SortFunc(names, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.digest, b.digest))
	})
	l.names, l.modified, l.read, l.took = names, info.ModTime(), start, time.Since(start)
	return nil
}

// wake returns a channel that is closed when this process changes the queue.
func (b *backlog) wake() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// announce wakes those who wait.
func (b *backlog) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
