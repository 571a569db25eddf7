package worker

import (
	"container/heap"
	"time"
)

// SetStep sets what is called before each step of a job's life.
func (c *Config) SetStep(step func(name string)) { c.step = step }

// SetRandom sets the source of jitter, in [0, 1).
func (c *Config) SetRandom(random func() float64) { c.random = random }

// Expire ends the lease of every claim.
func (m *Memory) Expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, j := range m.jobs {
		if j.status.State == Running {
			j.lease, j.at = now, now
			heap.Fix(&m.timed, j.index)
		}
	}
	m.announce()
}
