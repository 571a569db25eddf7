package container

import (
	"syscall"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
	"golang.org/x/sys/unix"
)

// startInLeaf lets the process begin its life in the leaf, so that no
// instruction of it runs outside. Linux 5.7 and later can.
func startInLeaf(attr *syscall.SysProcAttr, leaf *cgroup.Leaf) {
	attr.UseCgroupFD = true
	attr.CgroupFD = leaf.FD()
}

// hostMemory returns the memory of this host in bytes.
func hostMemory() jobsize.Limit {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return jobsize.Limit{}
	}
	return jobsize.Known(int64(info.Totalram) * int64(info.Unit))
}
