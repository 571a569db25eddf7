package exit

import "github.com/edgehero/dispatch/internal/jsonval"

// A Parser reads exit lines out of the tail of a run's output. The zero Parser
// knows the default vocabulary.
type Parser struct {
	// Vocabulary is the reasons of the runner image. Defaults to
	// DefaultVocabulary, list by list.
	Vocabulary Vocabulary
}

// Parse returns the decisive line of a tail, nil when there is none, which is a
// normal answer and not a fault. It checks no signature: a line that the
// container's own workload forged reads like the runner's. The result shares no
// memory with the tail.
func (p Parser) Parse(tail []byte) *Line {
	s := scan{}
	s.run(tail)
	return p.line(s)
}

// ParseSigned returns the decisive line among those that k signed, nil when
// there is none; any other line might as well not be there. The second result
// is Verified when at least one line verified, even one that says nothing, and
// Unverified otherwise. The zero Key verifies no line.
func (p Parser) ParseSigned(tail []byte, k Key) (*Line, Auth) {
	s := scan{signed: true, key: k}
	s.run(tail)
	return p.line(s), s.auth()
}

// line rebuilds the decisive line of a scan.
func (p Parser) line(s scan) *Line {
	if s.decisive == nil {
		return nil
	}
	return p.rebuild(s.decisive, s.signed, func(string, string) {})
}

// rebuild reads every field of an exit line and tells note how each came out:
// kept, missing, or why it was dropped.
func (p Parser) rebuild(object jsonval.Object, verified bool, note func(field, result string)) *Line {
	r := rebuilding{vocabulary: p.Vocabulary.orDefault()}
	r.line.Verified = verified
	for _, f := range fields {
		result := missing
		if v := object.Get(f.key); !absent(v) {
			result = f.read(&r, v)
		}
		note(f.name, result)
	}
	return &r.line
}
