package livejobs

import (
	"cmp"
	"slices"
	"sync"
)

// A Registry holds the jobs that this process runs right now. The zero Registry
// is empty and ready to use. It is safe for concurrent use.
type Registry struct {
	mu   sync.Mutex
	next int64
	jobs map[int64]Running
}

// Add enters a pickup that took its slot, and returns what removes it again,
// which acts once. The entry is the pickup's, not the job's: when a stalled job
// is handed back while its first pickup still runs here, the one does not remove
// the other's.
func (r *Registry) Add(job Running) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[int64]Running{}
	}
	r.next++
	number := r.next
	r.jobs[number] = job
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.jobs, number)
	}
}

// Jobs returns a copy of what is entered, in the order of entry: the jobs that
// run and the orphans, as [List] takes them.
func (r *Registry) Jobs() (running, orphans []Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := make([]int64, 0, len(r.jobs))
	for number := range r.jobs {
		numbers = append(numbers, number)
	}
	slices.SortFunc(numbers, cmp.Compare[int64])
	for _, number := range numbers {
		if job := r.jobs[number]; job.Orphan {
			orphans = append(orphans, job)
		} else {
			running = append(running, job)
		}
	}
	return running, orphans
}
