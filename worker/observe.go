package worker

import "context"

// observe tells the embedder of an event. One that nobody is told of costs no
// allocation, which is why the call stands apart.
func (w *Worker) observe(e Event) {
	if w.config.Hooks.Observe != nil {
		w.tellObserver(e)
	}
}

// tellObserver calls the hook. While a call hangs no other is made: what becomes of
// jobs never waits for who looks on.
func (w *Worker) tellObserver(e Event) {
	if w.hooks.hangs("Observe") {
		w.counts.events.Add(1)
		return
	}
	_, err := call(context.Background(), &w.hooks, "Observe", w.config.HookLimit, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.config.Hooks.Observe(ctx, e)
	}, nil)
	if err != nil {
		w.counts.events.Add(1)
		w.log.Error("observe_failed", "event", e.Kind, "error", err)
	}
}
