package worker

import "time"

// A Backoff says how long a failed job waits before its next attempt: Base
// after the first, twice as long after each further one, never more than Max.
// Of that wait a random part, up to a half, is taken off, so that jobs that
// failed together do not come back together.
type Backoff struct {
	// Base is the wait after the first attempt. Defaults to 10 seconds.
	Base time.Duration
	// Max bounds every wait. Defaults to 10 minutes.
	Max time.Duration
}

// after returns the wait after an attempt, 1 for the first; random is in [0, 1).
func (b Backoff) after(attempt int, random float64) time.Duration {
	wait := min(b.Base, b.Max)
	for ; attempt > 1 && wait < b.Max; attempt-- {
		// Not 2*wait, which could overflow.
		wait += min(wait, b.Max-wait)
	}
	return wait - time.Duration(random*float64(wait/2))
}
