package cgroup

import (
	"context"

	"github.com/edgehero/dispatch/exit"
)

// A Parent is a cgroup that was delegated to this program.
type Parent struct{ dir string }

// OpenParent takes the cgroup whose directory is dir.
func OpenParent(dir string) (*Parent, error) { return nil, ErrNotSupported }

// Create makes the cgroup of one run.
func (p *Parent) Create(instance, name string, l Limits) (*Leaf, error) { return nil, ErrNotSupported }

// Sweep kills and removes every leaf of an instance that is dead.
func (p *Parent) Sweep(ctx context.Context, instance string) (removed []string, err error) {
	return nil, ErrNotSupported
}

// A Leaf is the cgroup of one run.
type Leaf struct{ dir string }

// Dir returns the leaf's directory.
func (l *Leaf) Dir() string { return l.dir }

// FD returns a descriptor of the leaf.
func (l *Leaf) FD() int { return -1 }

// Usage returns what the kernel measured of the leaf.
func (l *Leaf) Usage() *exit.Resources { return Usage(l.dir) }

// Kill kills every process in the leaf.
func (l *Leaf) Kill(ctx context.Context) error { return ErrNotSupported }

// Remove removes the leaf.
func (l *Leaf) Remove() error { return ErrNotSupported }

// An OOMWatch keeps the last counts of memory.events.
type OOMWatch struct{}

// WatchOOM watches the cgroup whose directory is dir.
func WatchOOM(dir string) (*OOMWatch, error) { return nil, ErrNotSupported }

// Events returns the last counts.
func (w *OOMWatch) Events() (e Events, ok bool) { return Events{}, false }

// Close ends the watch.
func (w *OOMWatch) Close() error { return nil }
