package jobsize

import (
	"fmt"
	"strconv"
)

// The bounds of a job's memory.
const (
	MinMem MiB = 64
	MaxMem MiB = 1 << 20 // 1 TiB
)

// MiB is an amount of memory in mebibytes.
type MiB int64

// Bytes returns the amount in bytes.
func (m MiB) Bytes() int64 { return int64(m) << 20 }

// String returns the one spelling that is written: 4g when the amount is whole
// GiB, else 512m. [ParseMemory] reads it back to the same amount.
func (m MiB) String() string {
	if m%1024 == 0 {
		return strconv.FormatInt(int64(m/1024), 10) + "g"
	}
	return strconv.FormatInt(int64(m), 10) + "m"
}

// ParseMemory reads an amount of memory written as a whole number and the unit m
// (MiB) or g (GiB), in either case, from 64m to 1024g. The number has no sign,
// space, fraction, exponent or leading zero. The error names the text, cut at 64
// characters, and what is allowed.
func ParseMemory(s string) (MiB, error) {
	digits, unit := "", MiB(0)
	if s != "" {
		digits = s[:len(s)-1]
		switch s[len(s)-1] {
		case 'm', 'M':
			unit = 1
		case 'g', 'G':
			unit = 1024
		}
	}
	n, ok := parseDecimal(digits, int64(MaxMem))
	// n is at most MaxMem+1, so that the product can't overflow.
	if mem := MiB(n) * unit; ok && mem >= MinMem && mem <= MaxMem {
		return mem, nil
	}
	return 0, fmt.Errorf("memory is %s, want a whole number of MiB (m) or GiB (g) from %v to %v, such as 512m or 4g", quote(s), MinMem, MaxMem)
}

// parseDecimal reads a whole number without sign or leading zero. A number above
// most reads as most+1, however many digits it has.
func parseDecimal(s string, most int64) (n int64, ok bool) {
	if s == "" || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(10*n+int64(s[i]-'0'), most+1)
	}
	return n, true
}

// quote bounds and quotes a text for an error.
func quote(s string) string {
	const most = 64 // characters
	n := 0
	for i := range s {
		if n == most {
			return strconv.Quote(s[:i]) + "..."
		}
		n++
	}
	return strconv.Quote(s)
}
