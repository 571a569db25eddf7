package worker

import (
	"context"
	"errors"
	"time"

	"github.com/edgehero/dispatch/container"
)

// keepLease renews the claim until ctx ends, and stops the job when somebody
// asked for its cancel or when another worker got it.
func (p *pickup) keepLease(ctx context.Context) {
	interval := p.w.config.CancelPoll
	if lease := p.delivery.Lease(); lease > 0 {
		interval = min(interval, lease/3)
	}
	timer := time.NewTimer(p.firstRenewal(interval))
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		cancel, err := p.delivery.Extend(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLeaseLost):
			p.loseLease()
			return
		case err != nil:
			if !failing {
				p.log.Error("lease_extend_failed", "error", err)
			}
		case cancel:
			p.stop(container.ErrCancelled)
		}
		failing = err != nil
		timer.Reset(interval)
	}
}

// firstRenewal returns the wait before the first renewal. A job that stalled may
// have been cancelled since.
func (p *pickup) firstRenewal(interval time.Duration) time.Duration {
	if p.job.Stalls > 0 {
		return 0
	}
	return interval
}

// loseLease notes that the job is another worker's. Once the queue is being
// told how the pickup ends, its own answer says so.
func (p *pickup) loseLease() {
	if p.telling.Load() {
		return
	}
	p.lost.Store(true)
	if p.running.Load() && p.w.config.OnLeaseLost == FinishRun {
		return
	}
	p.stop(ErrLeaseLost)
}
