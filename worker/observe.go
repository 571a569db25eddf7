package worker

import "context"

// observe tells the embedder of an event. A call that hangs is told of no more
// until it returns: what becomes of jobs never waits for who looks on.
func (w *Worker) observe(e Event) {
	hook := w.config.Hooks.Observe
	if hook == nil {
		return
	}
	if w.hooks.hangs("Observe") {
		w.counts.events.Add(1)
		return
	}
	_, err := call(context.Background(), &w.hooks, "Observe", w.config.HookLimit, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, hook(ctx, e)
	}, nil)
	if err != nil {
		w.counts.events.Add(1)
		w.log.Error("observe_failed", "event", e.Kind, "error", err)
	}
}
