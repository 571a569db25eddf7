package cgroup

// Events are the counts of a cgroup's memory.events, its descendants' included.
type Events struct {
	OOM     int64 // a memory limit of this cgroup left no way out but to kill
	OOMKill int64 // processes killed for memory, whoever's limit it was
}

// A Cause says whose memory limit killed.
type Cause string

// The causes.
const (
	NoKill     Cause = ""         // nothing was killed for memory
	OwnLimit   Cause = "own"      // the cgroup's own limit
	OtherLimit Cause = "ancestor" // a limit above it, or the host's memory
	AnyLimit   Cause = "unknown"  // both may have
)
