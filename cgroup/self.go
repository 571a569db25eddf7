package cgroup

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

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

// Of returns the cgroup that a process is in, by its id as this process sees it.
func Of(pid int) Own { return in(os.DirFS("/"), strconv.Itoa(pid)) }

// MemoryNow returns memory.current: the bytes that the cgroup holds now.
func (o Own) MemoryNow() (bytes int64, ok bool) {
	if o.Dir == "" {
		return 0, false
	}
	d, err := openDir(o.Dir)
	if err != nil {
		return 0, false
	}
	defer d.close()
	return parseNumber(d.read("memory.current", make([]byte, fileSize)))
}

// SelfIn is [Self] for a host whose root directory is root. Its Dir is then a
// path below that root, with a leading slash.
func SelfIn(root fs.FS) Own { return in(root, "self") }

// in reads the cgroup of one folder of /proc. Its path and the mounts are both as
// this process sees them.
func in(root fs.FS, process string) Own {
	cgroups, _ := fs.ReadFile(root, "proc/"+process+"/cgroup")
	mountinfo, _ := fs.ReadFile(root, "proc/self/mountinfo")
	mounts := parseMounts(mountinfo)
	cgroup, v1, ok := sizePath(parseMemberships(cgroups))
	switch {
	case v1 && len(mounts) > 0:
		return Own{Version: Hybrid, Path: cgroup, Reason: ReasonHybrid}
	case v1:
		return Own{Version: V1, Path: cgroup, Reason: ReasonV1}
	case !ok || len(mounts) == 0:
		return Own{Reason: ReasonNoCgroups}
	}
	own := Own{Version: V2, Path: cgroup}
	own.Dir, own.Reason = locate(root, mounts, cgroup)
	return own
}

// locate finds the directory of a cgroup v2 path. The kernel ends the path of a
// removed cgroup in " (deleted)", which may also be the true end of a name: the
// literal name is tried first.
func locate(root fs.FS, mounts []mount, cgroup string) (string, Reason) {
	for _, m := range mounts {
		dir, ok := m.dirOf(cgroup)
		if !ok {
			continue
		}
		if info, err := fs.Stat(root, dir); err != nil || !info.IsDir() {
			continue
		}
		// Every cgroup but the root of all has this file.
		if _, err := fs.Stat(root, path.Join(dir, "cgroup.events")); err != nil {
			return "", ReasonRoot
		}
		return "/" + dir, ""
	}
	if strings.HasSuffix(cgroup, " (deleted)") {
		return "", ReasonGone
	}
	return "", ReasonNotVisible
}
