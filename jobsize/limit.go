package jobsize

import "strconv"

// A Limit is a bound that is a number, off (no limit) or unknown. The zero
// value is unknown. The number's unit is its holder's to say.
type Limit struct {
	n     int64
	state limitState
}

type limitState uint8

const (
	unknown limitState = iota
	known
	off
)

// Known returns the limit n. A negative n is unknown.
func Known(n int64) Limit {
	if n < 0 {
		return Limit{}
	}
	return Limit{n, known}
}

// Off returns the limit that bounds nothing.
func Off() Limit { return Limit{state: off} }

// Value returns the limit's number; ok is false when the limit is off or
// unknown.
func (l Limit) Value() (n int64, ok bool) { return l.n, l.state == known }

// IsOff reports whether the limit bounds nothing.
func (l Limit) IsOff() bool { return l.state == off }

// String returns the number, "off" or "unknown".
func (l Limit) String() string {
	switch l.state {
	case known:
		return strconv.FormatInt(l.n, 10)
	case off:
		return "off"
	}
	return "unknown"
}
