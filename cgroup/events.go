package cgroup

// Events are the counts of a cgroup's memory.events, its descendants' included.
//
//	low 0
//	high 0
//	max 24
//	oom 1
//	oom_kill 1
type Events struct {
	// OOM counts how often a limit of this cgroup left nothing but to kill or
	// to fail. The victim of a limit above it has none.
	OOM int64
	// OOMKill counts the processes killed for memory, whoever's limit it was.
	// This is the count that says something was killed.
	OOMKill int64
}

// parseEvents reads memory.events; ok is false without both lines. Linux has
// oom_kill since 4.13.
func parseEvents(b []byte) (e Events, ok bool) {
	oom, ok := keyed(b, "oom")
	kills, ok2 := keyed(b, "oom_kill")
	if !ok || !ok2 {
		return Events{}, false
	}
	return Events{OOM: oom, OOMKill: kills}, true
}

// A Cause says whose memory limit killed.
type Cause string

// The causes.
const (
	NoKill     Cause = ""         // nothing was killed for memory
	OwnLimit   Cause = "own"      // the cgroup's own limit
	OtherLimit Cause = "ancestor" // a limit above it, or the host's memory
	AnyLimit   Cause = "unknown"  // at least one kill was not its own
)

// Cause returns whose limit killed. The kernel counts oom at the cgroup whose
// limit was hit, and oom_kill also at the victim's; with memory.oom.group off,
// one oom kills at most one process.
func (e Events) Cause() Cause {
	switch {
	case e.OOMKill == 0:
		return NoKill
	case e.OOM == 0:
		return OtherLimit
	case e.OOM < e.OOMKill:
		return AnyLimit
	}
	return OwnLimit
}
