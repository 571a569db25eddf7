package worker

import (
	"context"
	"slices"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

const (
	// passFor is how long a job that never fits this host is left to others
	// before this host may see it again.
	passFor = 15 * time.Second
	// maxPassed bounds how often a job is passed on before it is refused.
	maxPassed = 64
)

// A host is what this host has for jobs at one moment.
type host struct {
	cpus   jobsize.Limit // whole CPUs
	budget jobsize.Budget
}

// hostNow asks the runtime for its host and tells the ledger; facts that the
// runtime does not give are unknown.
func (w *Worker) hostNow(ctx context.Context) host {
	facts, err := w.config.Runtime.Facts(ctx)
	if err != nil {
		w.log.Warn("facts_failed", "error", err)
		facts = container.Facts{}
	}
	h := host{cpus: facts.CPUs, budget: w.config.Budget}
	known := jobsize.FactsBudget(facts.Memory, facts.CPUs)
	def(&h.budget.Mem, known.Mem)
	def(&h.budget.CPU, known.CPU)
	w.ledger.setBudget(h.budget)
	return h
}

// ceiling is how many CPUs, in hundredths, any one job may use.
func (h host) ceiling() jobsize.Limit { return jobsize.Ceiling(h.cpus, h.budget.CPU) }

// capacity is what the record of a run says of the host it was admitted to.
func (h host) capacity(slots int) *record.Capacity {
	n := int64(slots)
	c := &record.Capacity{Slots: &n, MemMiB: record.Limit{Limit: h.budget.Mem}, CPUCenti: record.Limit{Limit: h.budget.CPU}}
	if cpus, ok := h.cpus.Value(); ok {
		c.CPUs = &cpus
	}
	return c
}

// record is what the record of a refusal says of the host that is too small.
func (h host) record(sharePercent int64) *record.HostBudget {
	b := &record.HostBudget{MemMiB: record.Limit{Limit: h.budget.Mem}, CPUCenti: record.Limit{Limit: h.budget.CPU}}
	if sharePercent >= 1 && sharePercent <= 99 {
		b.HostShare = &sharePercent
	}
	return b
}

// offerElsewhere reports whether another live host has yet to see the job.
func (p *pickup) offerElsewhere() bool {
	hosts := p.w.config.Hosts
	if hosts == nil || p.job.Host != "" || len(p.job.Passed) >= maxPassed {
		return false
	}
	live, err := call(p.ctx, &p.w.hooks, "Hosts", p.w.config.HookLimit, hosts, nil)
	if err != nil {
		p.log.Error("hosts_failed", "error", err)
		return false
	}
	return slices.ContainsFunc(live, func(name string) bool {
		return name != p.w.config.Host && !slices.Contains(p.job.Passed, name)
	})
}
