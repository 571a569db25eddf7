package worker

import (
	"context"
	"errors"
	"time"

	"github.com/edgehero/dispatch/container"
)

// startRenewing keeps the claim until the returned function is called. A job that
// ends before the first renewal costs a timer and no goroutine.
func (p *pickup) startRenewing() (stop func()) {
	interval := p.w.config.CancelPoll
	if lease := p.delivery.Lease(); lease > 0 {
		interval = min(interval, lease/3)
	}
	first := interval
	if p.job.Stalls > 0 { // it may have been cancelled since
		first = 0
	}
	ctx, cancel := context.WithCancel(p.settling)
	ended := make(chan struct{})
	timer := time.AfterFunc(first, func() {
		defer close(ended)
		p.keepLease(ctx, interval)
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-ended
		}
	}
}

// keepLease renews the claim at an interval until ctx ends, and stops the job when
// somebody asked for its cancel or when another worker got it.
func (p *pickup) keepLease(ctx context.Context, interval time.Duration) {
	failing := false
	for {
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
		if !sleep(ctx, interval) {
			return
		}
	}
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
