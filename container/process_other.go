//go:build !linux

package container

import (
	"syscall"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
	"golang.org/x/sys/unix"
)

// startInLeaf is never called: there is no cgroup to open a parent of.
func startInLeaf(*syscall.SysProcAttr, *cgroup.Leaf) {}

// hostMemory returns the memory of this host in bytes.
func hostMemory() jobsize.Limit {
	bytes, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return jobsize.Limit{}
	}
	return jobsize.Known(int64(bytes))
}
