package streams

import (
	"log/slog"
	"sync"
	"time"
)

// faults logs what the scripts found wrong with the stored state, each text once
// a minute at most: a claim finds the same again and again.
type faults struct {
	log *slog.Logger

	mu    sync.Mutex
	said  map[string]bool
	since time.Time
}

// maxFaultLen bounds what a foreign key can put into the log, in bytes.
const maxFaultLen = 256

func (f *faults) say(texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.since) > time.Minute || len(f.said) > 1000 {
		f.said, f.since = map[string]bool{}, time.Now()
	}
	for _, text := range texts {
		text = text[:min(len(text), maxFaultLen)]
		if !f.said[text] {
			f.said[text] = true
			f.log.Error("queue_state_broken", "what", text)
		}
	}
}
