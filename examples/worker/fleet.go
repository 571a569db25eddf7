package main

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/livejobs/redisrow"
	"github.com/edgehero/dispatch/worker"
)

const (
	// redialPause is the wait before a server that is away is asked again.
	redialPause = time.Second
	// nameWait is how long a name that is still published is watched: by then it
	// is known whether another worker lives under it. A publisher says so within
	// two of its beats of 10 s.
	nameWait = 30 * time.Second
)

// awaitQueue opens the queue that a worker takes jobs from. A server that is away
// is waited for until ctx ends.
func (h *host) awaitQueue(ctx context.Context, redis redisFlags) (*queue, error) {
	for waiting := false; ; waiting = true {
		q, err := openQueue(queueFlags{h.flags.data, redis}, h.name, h.log)
		if err == nil {
			h.warn(ctx, q)
			return q, nil
		}
		if !errors.Is(err, errRedisAway) {
			return nil, err
		}
		if !waiting {
			h.log.Warn("redis_away", "error", err)
		}
		if !sleep(ctx, redialPause) {
			return nil, err
		}
	}
}

// warn logs what of a server's setup does not fit a queue.
func (h *host) warn(ctx context.Context, q *queue) {
	if q.warnings == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for _, warning := range q.warnings(ctx) {
		h.log.Warn("queue_server_setup", "warning", warning)
	}
}

// liveHosts returns the names of the hosts whose rows are fresh.
func liveHosts(ctx context.Context, client rueidis.Client, prefix string) ([]string, error) {
	fleet, err := redisrow.Fleet(ctx, client, redisrow.FleetConfig{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range fleet.Hosts {
		if !h.Stale {
			names = append(names, h.Name)
		}
	}
	return names, nil
}

// newPublisher returns what shows the fleet what this host runs.
func (h *host) newPublisher(redis redisFlags, w *worker.Worker, live *livejobs.Registry) (*redisrow.Publisher, error) {
	option, err := redisrow.ClientOption(redis.url())
	if err != nil {
		return nil, usagef("flag -redis: %w", err)
	}
	p, err := redisrow.New(redisrow.Config{
		Server: option, Prefix: redis.prefix, Host: h.name, Version: version(), Jobs: live, Log: h.log,
		Slots: func() (slots, used int) { s := w.Stats(); return s.Slots, s.PickedUp },
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return p, nil
}

// publish keeps this host's row in the registry until leave is called. named ends
// with ctx, and with an error that is redisrow.ErrNameTaken as its cause when
// another live worker turns out to have this host's name. While that is in
// question publish does not return.
func (h *host) publish(ctx context.Context, q *queue, p *redisrow.Publisher) (named context.Context, leave func()) {
	named, refuse := context.WithCancelCause(ctx)
	inQuestion := h.isPublished(ctx, q)
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		refuse(p.Run(publishing))
	}()
	if inQuestion {
		h.log.Warn("host_name_in_question", "host", h.name, "pause", nameWait)
		sleep(named, nameWait)
	}
	return named, func() { stop(); <-stopped }
}

// isPublished reports whether the fleet has a live host of this one's name.
func (h *host) isPublished(ctx context.Context, q *queue) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	names, err := q.hosts(ctx)
	return err == nil && slices.Contains(names, h.name)
}

// version names this build in the rows of the fleet.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return strings.Trim(info.Main.Version, "()") // (devel) without version control
}

// sleep waits; false says that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
