// Package cgroup asks the kernel what a job used and where it runs, and gives a
// job of the process runtime a cgroup of its own with its size applied. It
// knows cgroup v2 alone: a v1 or hybrid host is recognised and named, never
// half read.
//
// [Usage] reads the resources block of an exit line out of a cgroup's
// directory, and [Self] finds the cgroup that the caller is in. [Place] decides
// whether a container runs under the parent it was given, and [ReadBack] judges
// what a probe printed from inside one. [OpenParent] takes a cgroup that was
// delegated to this program; [Parent.Create] makes a [Leaf] in it for one job.
// [WatchOOM] keeps the last counts of memory.events, because a cgroup is gone
// before anybody can read it after the end.
//
// Two things break these promises. A number is only as good as the kernel: what
// it does not offer is nil, never 0, and a cgroup that was used before carries
// the peaks of the earlier use, so a leaf is never used twice. And a bound holds
// only below the delegated parent: nothing is ever written above it, so a parent
// that somebody else squeezes squeezes every job in it.
package cgroup
