package streams

import "errors"

// group is the consumer group of every ready stream.
const group = "workers"

// DefaultPrefix begins every key. The braces make one hash slot of them on a
// cluster.
const DefaultPrefix = "dispatch:{jobs}:"

// keys spells the name of every key; see the package comment. Scripts get a
// prefix where they find the id of a job on the way.
type keys struct{ prefix string }

func (k keys) job(id string) string       { return k.jobs() + id }
func (k keys) jobs() string               { return k.prefix + "job:" }
func (k keys) ready() string              { return k.prefix + "ready" }
func (k keys) readyOn(host string) string { return k.hosts() + host }
func (k keys) hosts() string              { return k.prefix + "ready:" }
func (k keys) delayed() string            { return k.prefix + "delayed" }
func (k keys) dead() string               { return k.prefix + "dead" }
func (k keys) ended(id string) string     { return k.prefix + "ended:" + id }
func (k keys) record(id string) string    { return k.prefix + "runs:rec:" + id }
func (k keys) changed() string            { return k.prefix + "changed" }
func (k keys) server() string             { return k.prefix + "server" }

// checkPrefix refuses a prefix whose keys could lie in different slots.
func checkPrefix(prefix string) error {
	open := -1
	for i, c := range prefix {
		switch {
		case c == '{' && open < 0:
			open = i
		case c == '}' && open >= 0:
			if i > open+1 {
				return nil
			}
			return errors.New("Prefix: its hash tag {} is empty; write for example dispatch:{jobs}:")
		}
	}
	return errors.New("Prefix: has no hash tag; write for example dispatch:{jobs}:")
}
