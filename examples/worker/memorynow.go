package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/livejobs"
)

// A listJobs returns the containers that this worker runs now.
type listJobs func(ctx context.Context) ([]container.State, error)

const (
	// measureEvery is how often the memory of running jobs is read.
	measureEvery = time.Second
	// findTries is how often a runtime is asked for the containers of a job; the
	// first answers may come before its container does.
	findTries = 5
)

// memoryNow is what the cgroups of the running jobs hold. A runtime is asked for
// a job's container a few times at most; then one file of the kernel is read.
type memoryNow struct {
	list listJobs

	mu   sync.Mutex
	jobs map[string]*measured // by id
}

// A measured job is one whose memory is read.
type measured struct {
	at     time.Time // when it took its slot
	cgroup cgroup.Own
	tries  int
	now    int64 // -1 when not known
}

// of returns what a job holds now in bytes, -1 when that is not known.
func (m *memoryNow) of(job string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.jobs[job]; of != nil {
		return of.now
	}
	return -1
}

// keep reads every now and then until ctx ends.
func (m *memoryNow) keep(ctx context.Context, live *livejobs.Registry) {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		running, _ := live.Jobs()
		if m.enter(running) {
			m.find(ctx)
		}
		m.read()
	}
}

// enter keeps exactly the running jobs, and reports whether the container of any
// is to be looked for.
func (m *memoryNow) enter(running []livejobs.Running) (lacking bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := map[string]*measured{}
	for _, job := range running {
		of := m.jobs[job.ID]
		if of == nil || !of.at.Equal(job.At) { // another attempt has another container
			of = &measured{at: job.At, now: -1}
		}
		jobs[job.ID] = of
		lacking = lacking || of.cgroup.Dir == "" && of.tries < findTries
	}
	m.jobs = jobs
	return lacking
}

// find looks for the cgroups of the jobs that lack one.
func (m *memoryNow) find(ctx context.Context) {
	states, err := m.list(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.jobs {
		of.tries++
	}
	if err != nil {
		return
	}
	for _, state := range states {
		if of := m.jobs[state.Labels.Job]; of != nil && of.cgroup.Dir == "" {
			of.cgroup = cgroupOf(state)
		}
	}
}

// cgroupOf returns the cgroup that is a container's own. Its path holds the
// container's id: a process of another PID namespace that has the number here, or
// a job that shares its worker's cgroup, is not taken for it.
func cgroupOf(state container.State) cgroup.Own {
	if state.PID == 0 {
		return cgroup.Own{}
	}
	own := cgroup.Of(state.PID)
	if !strings.Contains(own.Path, state.ID) {
		return cgroup.Own{}
	}
	return own
}

func (m *memoryNow) read() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range m.jobs {
		now, ok := of.cgroup.MemoryNow()
		if !ok {
			now = -1
		}
		of.now = now
	}
}
