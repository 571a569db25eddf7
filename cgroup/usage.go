package cgroup

import (
	"io/fs"

	"github.com/edgehero/dispatch/exit"
)

// Usage returns what the kernel measured of the cgroup whose directory is dir,
// an absolute path. A file or a key that the kernel does not have, or a value
// that is no whole number from 0 to 2^53 - 1, leaves its field nil. The result
// is nil when nothing could be read. Memory and swap peaks cover the cgroup's
// whole life.
func Usage(dir string) *exit.Resources {
	d, err := openDir(dir)
	if err != nil {
		return nil
	}
	defer d.close()
	return usage(d.read)
}

// UsageFS is [Usage] for a file system whose root is the cgroup's directory.
func UsageFS(cgroup fs.FS) *exit.Resources {
	return usage(fsReader(cgroup))
}

// usage fills the block out of the few files it needs. One allocation holds the
// block and its numbers: the block is read at the end of every job, by a
// supervisor that may sit at the edge of its memory limit.
func usage(read readFile) *exit.Resources {
	var block struct {
		exit.Resources
		n    [9]int64
		used int
	}
	keep := func(n int64, ok bool) *int64 {
		if !ok {
			return nil
		}
		p := &block.n[block.used]
		block.used++
		*p = n
		return p
	}
	buf := make([]byte, fileSize)

	block.MemPeak = keep(parseNumber(read("memory.peak", buf)))
	block.SwapPeak = keep(parseNumber(read("memory.swap.peak", buf)))
	block.PidsPeak = keep(parseNumber(read("pids.peak", buf)))

	block.OOMKills = keep(keyed(read("memory.events", buf), "oom_kill"))

	pressure := read("memory.pressure", buf)
	block.MemSomeUsec = keep(pressureTotal(pressure, "some"))
	block.MemFullUsec = keep(pressureTotal(pressure, "full"))

	stat := read("cpu.stat", buf)
	block.CPUUsec = keep(keyed(stat, "usage_usec"))
	block.ThrottledUsec = keep(keyed(stat, "throttled_usec"))
	block.Throttled = keep(keyed(stat, "nr_throttled"))

	if block.used == 0 {
		return nil
	}
	return &block.Resources
}
