package cgroup

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a caller acts on. Each stands at the end of a chain that names
// what was attempted.
var (
	// ErrNotDelegated says that a parent cannot take jobs. The chain holds a
	// *[NotDelegatedError] that lists what is missing.
	ErrNotDelegated = errors.New("cgroup is not delegated")
	// ErrNotV2 says that there is no cgroup v2 at a path: a v1 or hybrid host,
	// or a folder of another file system.
	ErrNotV2 = errors.New("not a cgroup v2 directory: boot the host with systemd.unified_cgroup_hierarchy=1, or run without bounds")
	// ErrNotSupported says that this operating system has no cgroups.
	ErrNotSupported = errors.New("cgroups need Linux")
	// ErrName says that a name cannot be that of a leaf.
	ErrName = errors.New("name is not 1 to 100 of A-Z, a-z, 0-9, _ and -")
)

// A NotDelegatedError says why a parent cannot take jobs.
type NotDelegatedError struct {
	// Missing lists what is missing, each with the way to get it.
	Missing []string
	// Unenforced lists the kernel's names of the bounds that cannot be
	// enforced because of it, memory.max for example.
	Unenforced []string
}

// Error lists what is missing.
func (e *NotDelegatedError) Error() string {
	return fmt.Sprintf("%v: %s", ErrNotDelegated, strings.Join(e.Missing, "; "))
}

// Is reports whether target is [ErrNotDelegated].
func (e *NotDelegatedError) Is(target error) bool { return target == ErrNotDelegated }
