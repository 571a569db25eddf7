package record

import (
	"strconv"
	"strings"
	"time"

	"github.com/edgehero/dispatch/exit"
)

// An Instant is a moment as a record spells it: UTC to the millisecond, exactly
// 24 characters, such as 2026-05-01T10:00:00.000Z. "" is no instant and null in
// JSON. One that [Parse] found in a foreign record may be spelled in another
// way, and may be no instant at all, which [Instant.Time] says.
type Instant string

const (
	canonicalLayout = "2006-01-02T15:04:05.000Z"
	// maxMillis is the last instant that the 24 characters can hold.
	maxMillis = 253402300799999
	// unparsed stands for a value that is there and is no instant.
	unparsed Instant = "invalid"
)

// At returns the instant of t, "" for the zero time and for one before 1970 or
// after the year 9999.
func At(t time.Time) Instant {
	if t.IsZero() {
		return ""
	}
	ms := t.UnixMilli()
	if ms < 0 || ms > maxMillis {
		return ""
	}
	return atMillis(ms)
}

func atMillis(ms int64) Instant {
	return Instant(time.UnixMilli(ms).UTC().Format(canonicalLayout))
}

// Time returns the moment, cut to milliseconds; ok is false when the text is no
// instant: YYYY-MM-DD (midnight UTC) or YYYY-MM-DDTHH:MM:SS[.d+](Z|±HH:MM).
func (i Instant) Time() (t time.Time, ok bool) {
	s := string(i)
	if len(s) == len("2006-01-02") {
		t, err := time.Parse("2006-01-02", s)
		return t, err == nil
	}
	if len(s) < len("2006-01-02T15:04:05Z") || s[10] != 'T' {
		return time.Time{}, false
	}
	seconds, rest := s[:19], s[19:]
	t, err := time.Parse("2006-01-02T15:04:05", seconds)
	if err != nil {
		return time.Time{}, false
	}
	millis, rest, ok := fraction(rest)
	if !ok {
		return time.Time{}, false
	}
	offset, ok := zone(rest)
	if !ok {
		return time.Time{}, false
	}
	return t.Add(millis - offset), true
}

// fraction reads [.d+], cut to milliseconds, and returns what follows it.
func fraction(s string) (d time.Duration, rest string, ok bool) {
	if !strings.HasPrefix(s, ".") {
		return 0, s, true
	}
	n := 1
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == 1 {
		return 0, "", false
	}
	ms, _ := strconv.Atoi((s[1:n] + "00")[:3])
	return time.Duration(ms) * time.Millisecond, s[n:], true
}

// zone reads Z or ±HH:MM.
func zone(s string) (time.Duration, bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != len("+00:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	clock, err := time.Parse("15:04", s[1:])
	if err != nil {
		return 0, false
	}
	d := time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, true
}

// Canonical reports whether the instant is spelled as records spell it.
func (i Instant) Canonical() bool {
	if len(i) != len(canonicalLayout) {
		return false
	}
	t, ok := i.Time()
	return ok && t.UTC().Format(canonicalLayout) == string(i)
}

// MarshalJSON implements [json.Marshaler]: an instant in its canonical
// spelling, null for what is none.
func (i Instant) MarshalJSON() ([]byte, error) {
	if !i.Canonical() {
		t, _ := i.Time()
		i = At(t)
	}
	return exit.Word(i).MarshalJSON()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
