//go:build !linux

package cgroup

import (
	"context"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

// A Parent is a delegated cgroup. This operating system has none.
type Parent struct{}

// EnableControllers returns [ErrNotSupported].
func EnableControllers(string) error { return ErrNotSupported }

// OpenParent returns [ErrNotSupported].
func OpenParent(string) (*Parent, error) { return nil, ErrNotSupported }

// Close does nothing.
func (*Parent) Close() error { return nil }

// Create returns [ErrNotSupported].
func (*Parent) Create(string, string, Limits) (*Leaf, error) { return nil, ErrNotSupported }

// Leaves returns [ErrNotSupported].
func (*Parent) Leaves(string) ([]string, error) { return nil, ErrNotSupported }

// Sweep returns [ErrNotSupported].
func (*Parent) Sweep(context.Context, string) ([]string, error) { return nil, ErrNotSupported }

// A Leaf is the cgroup of one run. This operating system has none.
type Leaf struct{}

// Dir returns "".
func (*Leaf) Dir() string { return "" }

// FD returns -1.
func (*Leaf) FD() int { return -1 }

// Usage returns nil.
func (*Leaf) Usage() *exit.Resources { return nil }

// Events returns that the counts are unknown.
func (*Leaf) Events() (Events, bool) { return Events{}, false }

// MemoryLimits returns two unknown limits.
func (*Leaf) MemoryLimits() (own, above jobsize.Limit) { return }

// WatchOOM returns [ErrNotSupported].
func (*Leaf) WatchOOM() (*OOMWatch, error) { return nil, ErrNotSupported }

// Kill returns [ErrNotSupported].
func (*Leaf) Kill(context.Context) error { return ErrNotSupported }

// Remove returns [ErrNotSupported].
func (*Leaf) Remove() error { return ErrNotSupported }

// An OOMWatch keeps the last counts of memory.events. This operating system has
// none.
type OOMWatch struct{}

// WatchOOM returns [ErrNotSupported].
func WatchOOM(string) (*OOMWatch, error) { return nil, ErrNotSupported }

// Events returns that the counts are unknown.
func (*OOMWatch) Events() (Events, bool) { return Events{}, false }

// Close does nothing.
func (*OOMWatch) Close() error { return nil }
