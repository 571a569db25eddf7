package redisrow

import (
	"errors"
	"strings"
)

// DefaultPrefix begins every key. The braces make one hash slot of them on a
// cluster.
const DefaultPrefix = "dispatch:{fleet}:"

// keys spells the name of every key; see the package comment.
type keys struct{ prefix string }

func (k keys) row(host string) string   { return k.rows() + host }
func (k keys) rows() string             { return k.prefix + "host:" }
func (k keys) owner(host string) string { return k.prefix + "owner:" + host }
func (k keys) hosts() string            { return k.prefix + "hosts" }

// newKeys refuses a prefix whose keys could lie in different slots.
func newKeys(prefix string) (keys, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	_, tag, opened := strings.Cut(prefix, "{")
	tag, _, closed := strings.Cut(tag, "}")
	if !opened || !closed || tag == "" {
		return keys{}, errors.New("Prefix: has no hash tag; write for example " + DefaultPrefix)
	}
	return keys{prefix}, nil
}
