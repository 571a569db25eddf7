package exit

import (
	"bytes"
	"iter"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// A Finding says what one line of a tail came to in the pick of the decisive
// line.
type Finding string

// The findings of a line.
const (
	Decisive     Finding = "decisive"
	LaterDecided Finding = "a later exit line decided"
	Outranked    Finding = "the supervisor's line gives way to an exit line without that mark"
	NotExit      Finding = "without event exit"
	NotJSON      Finding = "not one complete JSON object, whole or from its last anchor"
	CutAtStart   Finding = "cut at its start"
	CutAtEnd     Finding = "cut at its end"
	NotSigned    Finding = "no signature"
	BadSignature Finding = "a signature of another key or another line"
)

// A scan picks the decisive line out of the lines of a tail, which it is
// offered from the last to the first.
type scan struct {
	signed bool // look only at lines that key signed
	key    Key

	decisive jsonval.Object // nil: none so far
	settled  bool           // no line before can decide any more
	verified bool           // at least one line verified
}

// run offers the lines of a tail until the decision stands.
func (s *scan) run(tail []byte) {
	for _, line := range linesFromEnd(tail) {
		if s.offer(line); s.settled {
			return
		}
	}
}

// offer looks at the line before those it was offered already. A line found
// Decisive stops being so when a later call answers Decisive too.
func (s *scan) offer(line []byte) Finding {
	if s.signed {
		unsigned, ok := s.key.Verify(line)
		if !ok {
			return BadSignature
		}
		s.verified = true
		line = unsigned
	}
	object, finding := readExit(line)
	if object == nil {
		return finding
	}
	if s.settled {
		return LaterDecided
	}
	if bySupervisor(object) {
		if s.decisive != nil {
			return LaterDecided
		}
	} else {
		s.settled = true
	}
	s.decisive = object
	return Decisive
}

func (s *scan) auth() Auth {
	switch {
	case !s.signed:
		return Unchecked
	case s.verified:
		return Verified
	}
	return Unverified
}

// linesFromEnd yields the lines of a tail that are not empty, trimmed, from the
// last to the first, each after its offset.
func linesFromEnd(tail []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for end := len(tail); end >= 0; {
			start := bytes.LastIndexByte(tail[:end], '\n') + 1
			if line := trim(tail[start:end]); len(line) > 0 && !yield(start, line) {
				return
			}
			end = start - 1
		}
	}
}

// readExit reads a trimmed line as an exit line: the whole of it or, when that
// is no JSON, what follows from its last anchor, since another program's
// unfinished output can be glued before it. It returns nil and why for any
// other line.
func readExit(line []byte) (jsonval.Object, Finding) {
	if !mayHoldExit(line) {
		return nil, NotExit
	}
	// A line of another kind of JSON value can't be parsed only to say nothing:
	// the text from an anchor inside it would be no complete object.
	if line[0] == '{' {
		if v, err := jsonval.Parse(line); err == nil {
			return exitObject(v)
		}
	}
	start := lastAnchor(line)
	if start <= 0 {
		return nil, NotJSON
	}
	v, err := jsonval.Parse(line[start:])
	if err != nil {
		return nil, NotJSON
	}
	return exitObject(v)
}

// mayHoldExit reports whether a line can hold the JSON string "exit": as such,
// or with an escape in it. Looking for bytes is many times faster than parsing.
func mayHoldExit(line []byte) bool {
	return bytes.Contains(line, []byte(`"exit"`)) || bytes.IndexByte(line, '\\') >= 0
}

func exitObject(v jsonval.Value) (jsonval.Object, Finding) {
	object, _ := v.Object()
	if event, _ := object.Get("event").Text(); event != "exit" {
		return nil, NotExit
	}
	return object, ""
}

func bySupervisor(object jsonval.Object) bool {
	by, _ := object.Get("by").Text()
	return by == "supervisor"
}
