package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// hookGrace is how long a hook may go on after its context has ended before
// the worker goes on without it.
const hookGrace = 5 * time.Second

// Errors of hooks, behind the hook's name.
var (
	errHookLimit    = errors.New("it took longer than its limit")
	errHookHangs    = errors.New("it did not return when its context ended; the worker goes on without it")
	errHookPanicked = errors.New("it panicked")
	errHookExited   = errors.New("it ended its goroutine")
)

// hooks calls what the embedder brought and survives it: a hook that panics,
// hangs or ends its goroutine is an error.
type hooks struct {
	log *slog.Logger

	mu      sync.Mutex
	hanging map[string]int // calls that the worker no longer waits for
}

// call calls a hook with a context that ends after a limit and returns its
// answer. An answer that comes after the worker stopped waiting goes to late,
// which gives back what it holds; nil when answers hold nothing.
func call[T any](ctx context.Context, h *hooks, name string, limit time.Duration, hook func(context.Context) (T, error), late func(T)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errHookLimit)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errHookExited}
		defer func() {
			if p := recover(); p != nil {
				h.panicked(name, p)
				a = answer{err: errHookPanicked}
			}
			answered <- a
		}()
		value, err := hook(ctx)
		a = answer{value, err}
	}()

	take := func(a answer) (T, error) {
		if a.err != nil {
			return a.value, fmt.Errorf("hook %s: %w", name, a.err)
		}
		return a.value, nil
	}
	select {
	case a := <-answered:
		return take(a)
	case <-ctx.Done():
	}
	grace := time.NewTimer(hookGrace)
	defer grace.Stop()
	select {
	case a := <-answered:
		return take(a)
	case <-grace.C:
	}
	h.hang(name, 1)
	h.log.Error("hook_hangs", "hook", name, "limit", limit)
	go func() {
		a := <-answered
		if late != nil {
			late(a.value)
		}
		h.hang(name, -1)
	}()
	var zero T
	return zero, fmt.Errorf("hook %s: %w", name, errHookHangs)
}

// panicked logs a panic without its value, which may hold a job's data: the
// type of the value, the text of the Go runtime's own errors, and the stack.
func (h *hooks) panicked(name string, value any) {
	text := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		text = err.Error()
	}
	stack := make([]byte, 8<<10)
	stack = stack[:runtime.Stack(stack, false)]
	h.log.Error("hook_panicked", "hook", name, "panic", text, "stack", string(stack))
}

func (h *hooks) hang(name string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hanging == nil {
		h.hanging = map[string]int{}
	}
	h.hanging[name] += n
	if h.hanging[name] == 0 {
		delete(h.hanging, name)
	}
}

// hangs reports whether a call of the hook is still out.
func (h *hooks) hangs(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hanging[name] > 0
}

// left names the hooks of which a call is still out.
func (h *hooks) left() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.hanging))
}
