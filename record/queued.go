package record

import (
	"strconv"
	"strings"
	"time"
)

// A Job is what a record takes from the queue's side of a job.
type Job struct {
	ID       string
	Created  time.Time     // the zero time is not known
	Delay    time.Duration // it was added with, cut to milliseconds
	Attempts int           // finished before this pickup
	Stalls   int
	Waits    bool // on a condition of its own
}

// QueuedAt returns when a job became eligible, "" when nobody can tell.
func QueuedAt(j Job) Instant {
	if j.Waits || j.Attempts > 0 || j.Stalls > 0 {
		return ""
	}
	if slot, ok := ScheduledFor(j.ID); ok {
		return At(slot)
	}
	if At(j.Created) == "" {
		return ""
	}
	ms := j.Created.UnixMilli() + max(0, j.Delay.Milliseconds())
	if ms > maxMillis {
		return ""
	}
	return atMillis(ms)
}

// ScheduledFor returns the slot of a job that a schedule made, whose id is
// repeat:<schedule>:<milliseconds since 1970>.
func ScheduledFor(jobID string) (slot time.Time, ok bool) {
	kind, _, slot, ok := scheduled(jobID)
	if !ok || kind != "repeat" {
		return time.Time{}, false
	}
	return slot, true
}

// scheduled takes the id of a schedule's job apart; the schedule's own id may
// hold colons.
func scheduled(jobID string) (kind, schedule string, slot time.Time, ok bool) {
	kind, rest, _ := strings.Cut(jobID, ":")
	last := strings.LastIndexByte(rest, ':')
	if kind != "repeat" && kind != "manual" || last < 0 {
		return "", "", time.Time{}, false
	}
	digits := rest[last+1:]
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !isDigit(digits[0]) || ms > maxMillis {
		return "", "", time.Time{}, false
	}
	return kind, rest[:last], time.UnixMilli(ms).UTC(), true
}
