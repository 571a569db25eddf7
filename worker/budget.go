package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/edgehero/dispatch/jobsize"
)

// maxOvertaken is how many later jobs may be admitted before one that waits for
// more room than is free. After that nothing is admitted until it was: a large
// job waits for what runs and for at most this many more.
const maxOvertaken = 8

// A ledger says who holds how much of this host. Jobs are admitted first come,
// first served; a smaller one may overtake a larger one that does not fit yet,
// within maxOvertaken.
type ledger struct {
	mu      sync.Mutex
	budget  jobsize.Budget
	used    jobsize.Size // its Source has no meaning
	holders int
	line    []*waiter // in order of arrival
}

type waiter struct {
	size      jobsize.Size
	overtaken int
	admitted  chan struct{} // closed under the ledger's lock
}

// setBudget tells the ledger what the host has now.
func (l *ledger) setBudget(b jobsize.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == l.budget {
		return
	}
	l.budget = b
	l.admit()
}

// acquire takes a size out of the budget. It waits in line until there is room
// or ctx ends; then it returns context.Cause(ctx) and holds nothing. The
// returned function gives the size back and must be called once.
func (l *ledger) acquire(ctx context.Context, size jobsize.Size) (release func(), err error) {
	w := &waiter{size: size, admitted: make(chan struct{})}
	l.mu.Lock()
	l.line = append(l.line, w)
	l.admit()
	l.mu.Unlock()
	select {
	case <-w.admitted:
	case <-ctx.Done():
		if l.leave(w) {
			return nil, context.Cause(ctx)
		}
	}
	return func() { l.giveBack(size) }, nil
}

// leave takes a waiter out of the line; false says that it was admitted.
func (l *ledger) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.line, w)
	if i < 0 {
		return false
	}
	l.line = slices.Delete(l.line, i, i+1)
	l.admit() // it may have been the one that nobody may overtake any more
	return true
}

func (l *ledger) giveBack(size jobsize.Size) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used.Mem -= size.Mem
	l.used.CPU -= size.CPU
	l.holders--
	l.admit()
}

// admit lets in everyone who may. The lock is held.
func (l *ledger) admit() {
	var waiting []*waiter
	closed := false // somebody waits whom nobody may overtake any more
	for _, w := range l.line {
		if closed || !l.fits(w.size) {
			waiting = append(waiting, w)
			closed = closed || w.overtaken >= maxOvertaken
			continue
		}
		l.used.Mem += w.size.Mem
		l.used.CPU += w.size.CPU
		l.holders++
		close(w.admitted)
		for _, earlier := range waiting {
			earlier.overtaken++
			closed = closed || earlier.overtaken >= maxOvertaken
		}
	}
	l.line = waiting
}

// fits reports whether there is room for one more job. A host that runs nothing
// takes any, so that a budget that shrank never blocks the line for ever.
func (l *ledger) fits(size jobsize.Size) bool {
	_, ok := l.budget.Fits(jobsize.Size{Mem: l.used.Mem + size.Mem, CPU: l.used.CPU + size.CPU}, 0)
	return ok || l.holders == 0
}

// usage returns how much is taken, by how many jobs, and how many wait.
func (l *ledger) usage() (used jobsize.Size, holders, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, l.holders, len(l.line)
}
