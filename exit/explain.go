package exit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// An Explanation is how a tail came to its answer.
type Explanation struct {
	// Line and Auth are the answer of ParseSigned or, for the zero Key, of
	// Parse, with Auth Unchecked.
	Line *Line
	Auth Auth
	// Candidates are the lines that are, or look as if they were meant to be,
	// exit lines, in the order of the tail.
	Candidates []Candidate
	// Fields are the fields of the decisive line, nil without one.
	Fields []Field
}

// A Candidate is one line of a tail and what it came to.
type Candidate struct {
	Number  int    // of the line in the tail, from 1
	Text    []byte // the line trimmed: untrusted bytes that point into the tail
	Finding Finding
}

// A Field is how one field of the decisive line came out.
type Field struct {
	Name string // as in the JSON form of Line, or by or loadedCut
	Kept bool
	// Why says why the value was dropped, and is "" when it was kept or absent.
	Why string
}

// Explain parses a tail as [Parser.ParseSigned] does or, for the zero Key, as
// [Parser.Parse] does, and tells how it came to the answer.
func (p Parser) Explain(tail []byte, k Key) Explanation {
	s := scan{signed: !k.IsZero(), key: k}
	var e Explanation
	decisive := -1
	var offsets []int
	for offset, line := range linesFromEnd(tail) {
		finding := s.offer(line)
		if finding == NotJSON || finding == BadSignature || finding == NotExit {
			if !looksMeant(line) {
				continue
			}
			finding = refine(finding, line)
		}
		if finding == Decisive {
			if decisive >= 0 {
				e.Candidates[decisive].Finding = Outranked
			}
			decisive = len(e.Candidates)
		}
		e.Candidates = append(e.Candidates, Candidate{Text: line, Finding: finding})
		offsets = append(offsets, offset)
	}
	slices.Reverse(e.Candidates)
	slices.Reverse(offsets)
	number, counted := 1, 0
	for i, offset := range offsets {
		number += bytes.Count(tail[counted:offset], []byte{'\n'})
		e.Candidates[i].Number, counted = number, offset
	}
	e.Auth = s.auth()
	if s.decisive != nil {
		e.Line = p.rebuild(s.decisive, s.signed, func(field, result string) {
			f := Field{Name: field, Kept: result == kept}
			if result != kept && result != missing {
				f.Why = result
			}
			e.Fields = append(e.Fields, f)
		})
	}
	return e
}

// looksMeant reports whether a line that says nothing has a part of an exit
// line, as a log line rarely does.
func looksMeant(line []byte) bool {
	return bytes.Contains(line, []byte(`"exit"`)) || endsSigned(line)
}

// refine tells apart what the pick treats alike.
func refine(f Finding, line []byte) Finding {
	start := lastAnchor(line)
	switch {
	case f == NotExit:
		return NotExit
	case start < 0 && endsSigned(line):
		return CutAtStart
	case start >= 0 && incomplete(line[start:]):
		return CutAtEnd
	case f == BadSignature && !endsSigned(line):
		return NotSigned
	}
	return f
}

// incomplete reports whether text is the beginning of a JSON value.
func incomplete(text []byte) bool {
	err := json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF)
}
