package worker

import (
	"bytes"
	"context"
	"sync/atomic"
)

const (
	maxLine  = 4 << 10
	maxLines = 256 // that wait for the Output hook
)

// lines cuts a job's output into lines and hands them to the Output hook from a
// goroutine of its own, so that a slow hook never holds up the job.
type lines struct {
	partial []byte
	queue   chan []byte
	done    chan struct{}
	dropped *atomic.Int64
}

func (p *pickup) newLines() *lines {
	l := &lines{queue: make(chan []byte, maxLines), done: make(chan struct{}), dropped: &p.w.counts.lines}
	seen := p.seen()
	go func() {
		defer close(l.done)
		for line := range l.queue {
			if p.w.hooks.hangs("Output") {
				l.dropped.Add(1)
				continue
			}
			_, err := call(p.settling, &p.w.hooks, "Output", p.w.config.HookLimit, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, p.w.config.Hooks.Output(ctx, seen, line)
			}, nil)
			if err != nil {
				l.dropped.Add(1)
			}
		}
	}()
	return l
}

// Write takes output as it comes. It never fails and never waits. The runtime
// calls it from one goroutine at a time.
func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		l.partial = append(l.partial, line[:min(len(line), maxLine-len(l.partial))]...)
		if !found {
			return n, nil
		}
		l.flush()
		b = rest
	}
}

func (l *lines) flush() {
	select {
	case l.queue <- bytes.Clone(l.partial):
	default:
		l.dropped.Add(1)
	}
	l.partial = l.partial[:0]
}

// close hands over what is left and waits for the hook.
func (l *lines) close() {
	if len(l.partial) > 0 {
		l.flush()
	}
	close(l.queue)
	<-l.done
}
