package exit

// A Parser reads exit lines out of the tail of a run's output. The zero Parser
// knows the default vocabulary.
type Parser struct {
	// Vocabulary is the reasons of the runner image. Defaults to
	// DefaultVocabulary, list by list.
	Vocabulary Vocabulary
}

// Parse returns the decisive line.
func (p Parser) Parse(tail []byte) *Line { return nil }

// ParseSigned returns the decisive line among the verified ones.
func (p Parser) ParseSigned(tail []byte, k Key) (*Line, Auth) { return nil, Unverified }
