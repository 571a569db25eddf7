package container

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/edgehero/dispatch/jobsize"
)

// A Spec says what one job needs of a runtime. Runtimes turn it into a command
// line; everything else that must know a bound reads it from there.
type Spec struct {
	// Name is the container's name. Defaults to a fresh NewName with the
	// runtime's prefix.
	Name string
	// Image is the reference or id of an image on this host. Empty only under
	// the process runtime.
	Image string
	// Entrypoint replaces the image's entrypoint. Defaults to the image's. It
	// can't stand beside Supervisor.
	Entrypoint string
	// Args is the program and its arguments. Defaults to the image's, which
	// it has to name where Supervisor is set.
	Args []string
	// Job and Attempt name the run, in the container's name and labels.
	Job     string
	Attempt int
	// Instance is the id of the worker process that owns the run, Host the
	// worker's name of this host. Default to the runtime's.
	Instance string
	Host     string
	// Size bounds memory and weighs CPU time.
	Size jobsize.Size
	// Shares is the CPU weight of the size, 2..262144. Defaults to
	// Size.Shares().
	Shares int64
	// CPUs is the ceiling every job of the host shares, in hundredths of a CPU.
	// Off or unknown leaves the bound off.
	CPUs jobsize.Limit
	// PIDs bounds the number of tasks, at least 16. Defaults to 512.
	PIDs int64
	// User is uid or uid:gid, numeric. Defaults to 65534:65534. Root is refused
	// unless AllowRoot is set.
	User      string
	AllowRoot bool
	// Workdir is where the command starts. Defaults to the image's.
	Workdir string
	// Mounts are the folders and files of the host that the job sees.
	Mounts []Mount
	// Env is the job's environment. Host variables are never added to it.
	Env map[string]string
	// Network is none, private (a network for this job alone, with no way out)
	// or the name of an existing network. Defaults to none.
	Network string
	// WritableRoot leaves the image's root file system writable.
	WritableRoot bool
	// TmpMiB is the size of /tmp. Defaults to a quarter of the memory.
	TmpMiB jobsize.MiB
	// CgroupParent is the cgroup that the venue runs its jobs under. Defaults
	// to none.
	CgroupParent string
	// ExtraFlags are further flags of the runtime, each out of a closed list.
	ExtraFlags []string
	// Supervisor is a static program on this host, by its absolute path, and
	// the arguments that make it a supervisor. It is mounted into the container
	// as its entrypoint. Defaults to the image's own entrypoint. The process
	// runtime always needs one.
	Supervisor []string
	// PlainCommand is true for a command that signs no exit line of its own;
	// its supervisor then turns a non-zero exit code into 2, ran and failed.
	PlainCommand bool
	// Deadline is how long the supervisor lets the command run, also when this
	// process is gone. Defaults to no bound. Only where Supervisor is set.
	Deadline time.Duration
}

// A Mount is one folder or file of the host that a job sees.
type Mount struct {
	Source   string // absolute path on the host
	Target   string // absolute path in the container
	Writable bool
	// Relabel gives the source a label of this job alone (SELinux). Only for a
	// directory that the job owns.
	Relabel bool
}

// Networks of a [Spec] that are no network's name.
const (
	NetworkNone    = "none"
	NetworkPrivate = "private"
)

// NewName returns a fresh name for a container: the prefix, 12 hex digits of the
// job id's SHA-256, the attempt and a nonce.
func NewName(prefix, job string, attempt int) string {
	digest := sha256.Sum256([]byte(job))
	return fmt.Sprintf("%s%s-%d-%s", prefix, hex.EncodeToString(digest[:6]), attempt, nonce())
}

// nonce returns 12 random hex digits.
func nonce() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// The accessors below give a field's value or its default.

// user returns uid:gid. A bare uid would get the group that the image names for
// it, root's if it names none.
func (s Spec) user() string {
	switch {
	case s.User == "":
		return "65534:65534"
	case strings.Contains(s.User, ":"):
		return s.User
	}
	return s.User + ":" + s.User
}

func (s Spec) network() string {
	switch s.Network {
	case "":
		return NetworkNone
	case NetworkPrivate:
		return s.Name // made for this run alone
	}
	return s.Network
}

func (s Spec) pids() int64 {
	if s.PIDs == 0 {
		return defaultPIDs
	}
	return s.PIDs
}

func (s Spec) shares() int64 {
	if s.Shares == 0 {
		return s.Size.Shares()
	}
	return s.Shares
}

// quarter is a quarter of the memory, at least 1 MiB.
func (s Spec) quarter() jobsize.MiB { return max(s.Size.Mem/4, 1) }

func (s Spec) tmp() jobsize.MiB {
	if s.TmpMiB == 0 {
		return s.quarter()
	}
	return s.TmpMiB
}

// mounts reports whether a mount of the Spec stands at the target.
func (s Spec) mounts(target string) bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return path.Clean(m.Target) == target })
}
