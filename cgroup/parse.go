package cgroup

import "bytes"

// maxValue is the largest number that is believed: 2^53 - 1, the largest that a
// reader of the JSON record holds exactly.
const maxValue = 1<<53 - 1

// parseNumber reads the text of a file that holds one number, such as
// memory.peak:
//
//	33554432
//
// The text "max", which stands for no limit, is no number.
func parseNumber(b []byte) (n int64, ok bool) {
	return digits(bytes.TrimSuffix(b, []byte("\n")))
}

func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
		if n > maxValue {
			return 0, false
		}
	}
	return n, len(b) > 0
}

// keyed reads one key of a flat keyed file, such as memory.events or cpu.stat:
//
//	low 0
//	oom 1
//	oom_kill 1
//
// The key is matched whole: a file may also hold xoom_kill or oom_kill_disable.
func keyed(b []byte, key string) (n int64, ok bool) {
	for line := range bytes.Lines(b) {
		name, value, found := bytes.Cut(line, []byte(" "))
		if found && string(name) == key {
			return parseNumber(value)
		}
	}
	return 0, false
}

// pressureTotal reads the total stall time, in microseconds, of one line of a
// pressure file:
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=1861
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=1770
//
// Either line may be missing: cpu.pressure has no full line before Linux 5.13.
func pressureTotal(b []byte, kind string) (usec int64, ok bool) {
	for line := range bytes.Lines(b) {
		name, rest, found := bytes.Cut(line, []byte(" "))
		if !found || string(name) != kind {
			continue
		}
		for field := range bytes.FieldsSeq(rest) {
			if total, found := bytes.CutPrefix(field, []byte("total=")); found {
				return digits(total)
			}
		}
		return 0, false
	}
	return 0, false
}
