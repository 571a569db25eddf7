package record

import (
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
)

// An Interval is the time in which an earlier attempt held a slot of a host.
type Interval struct {
	Host      exit.Word `json:"host"`
	StartedAt Instant   `json:"startedAt"`
	EndedAt   Instant   `json:"endedAt"`
	MemMiB    *int64    `json:"memMiB"`
	CPUCenti  *int64    `json:"cpuCenti"` // hundredths of a CPU
}

const maxEarlier = 4

// valid reports whether the interval has a host and two instants in order.
func (i Interval) valid() bool {
	return i.Host != "" && i.StartedAt.Canonical() && i.EndedAt.Canonical() && i.StartedAt <= i.EndedAt
}

// readEarlier returns the last of the valid intervals, nil when there is none.
func readEarlier(v jsonval.Value) []Interval {
	list, _ := v.List()
	var earlier []Interval
	for _, item := range list {
		o, _ := item.Object()
		i := Interval{
			word(o.Get("host"), isHost), canonical(o.Get("startedAt")), canonical(o.Get("endedAt")),
			count(o.Get("memMiB")), count(o.Get("cpuCenti")),
		}
		if i.valid() {
			earlier = append(earlier, i)
		}
	}
	return lastIntervals(earlier)
}

func lastIntervals(i []Interval) []Interval { return i[max(0, len(i)-maxEarlier):] }

// EarlierFrom returns the slot time of the attempts before a retry, the newest
// last, from the record that the retry will replace: that record's own earlier
// attempts and its own time. It is nil when there is none.
func EarlierFrom(previous *Record) []Interval {
	if previous == nil {
		return nil
	}
	own := Interval{Host: previous.Host, StartedAt: previous.StartedAt, EndedAt: previous.EndedAt}
	earlier := append([]Interval(nil), previous.Earlier...)
	if previous.Readable() && previous.Size != nil {
		own.MemMiB, own.CPUCenti = &previous.Size.MemMiB, &previous.Size.CPUCenti
	}
	// A refusal held no slot. Of a newer record nobody can say.
	if held := previous.Capacity != nil || !previous.Readable(); held && own.valid() {
		earlier = append(earlier, own)
	}
	return lastIntervals(earlier)
}

// Newer returns the newer of two copies of one job's record: the higher attempt,
// then the later end, then a. A missing copy is nil.
func Newer(a, b *Record) *Record {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.attempt() != b.attempt():
		if b.attempt() > a.attempt() {
			return b
		}
		return a
	case b.lastMillis() > a.lastMillis():
		return b
	}
	return a
}

func (r *Record) attempt() int64 {
	if r.Attempt == nil {
		return 0
	}
	return *r.Attempt
}

// lastMillis returns when the run ended, or began where its end is not known.
func (r *Record) lastMillis() int64 {
	last := r.EndedAt
	if last == "" {
		last = r.StartedAt
	}
	t, ok := last.Time()
	if !ok {
		return -1 << 63
	}
	return t.UnixMilli()
}
