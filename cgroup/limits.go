package cgroup

import (
	"strconv"

	"github.com/edgehero/dispatch/jobsize"
)

// DefaultPIDs bounds the tasks of a job whose [Limits] name no other number.
const DefaultPIDs = 512

// Limits are the bounds of one job.
type Limits struct {
	// Size bounds memory and, through its shares, weighs CPU time.
	Size jobsize.Size
	// Shares is the CPU weight as cpu-shares, 2..262144. Defaults to
	// Size.Shares().
	Shares int64
	// CPUs is the ceiling that every job of the host shares, in hundredths of
	// a CPU. Off or unknown sets none.
	CPUs jobsize.Limit
	// PIDs bounds the number of tasks. Defaults to DefaultPIDs.
	PIDs int64
}

// A Setting is a text to write into a file of a cgroup.
type Setting struct{ File, Text string }

// Settings returns what the limits are in the kernel's files, in the order in
// which they are written.
//
// The weight follows the linear mapping, under which two sizes weigh against
// each other as their CPUs do; all jobs of a parent are ours, so nothing else
// has to agree on the mapping.
func (l Limits) Settings() []Setting {
	return []Setting{
		{"memory.max", strconv.FormatInt(l.Size.Mem.Bytes(), 10)},
		// No swap past the size.
		{"memory.swap.max", "0"},
		// The supervisor in the leaf must outlive the command it reports on.
		{"memory.oom.group", "0"},
		{"cpu.weight", strconv.FormatInt(l.weight(), 10)},
		{"cpu.max", jobsize.CPUMax(l.CPUs)},
		{"pids.max", strconv.FormatInt(l.pids(), 10)},
	}
}

// weight is the cpu.weight of the limits' shares under the linear mapping, 1 for
// shares that no mapping takes.
func (l Limits) weight() int64 {
	if w := jobsize.Weights(l.shares()); len(w) > 0 {
		return w[0]
	}
	return 1
}

func (l Limits) shares() int64 {
	if l.Shares != 0 {
		return l.Shares
	}
	return l.Size.Shares()
}

func (l Limits) pids() int64 {
	if l.PIDs != 0 {
		return l.PIDs
	}
	return DefaultPIDs
}
