package cgroup

import (
	"io/fs"
	"path"
	"strings"

	"github.com/edgehero/dispatch/jobsize"
)

// MemoryLimits returns the memory.max, in bytes, of the cgroup whose directory is
// dir, and the lowest of those above it. A job is killed at the lower of the two;
// only its own is the size it asked for. root is the root directory of the host;
// dir is an absolute path below it.
func MemoryLimits(root fs.FS, dir string) (own, above jobsize.Limit) {
	dir = path.Clean(strings.TrimPrefix(dir, "/"))
	own = memoryMax(root, dir)
	for dir != "." && dir != "/" {
		dir = path.Dir(dir)
		// The root of all cgroups has no such file: unknown ends the climb.
		limit := memoryMax(root, dir)
		if limit == (jobsize.Limit{}) {
			break
		}
		above = lower(above, limit)
	}
	return own, above
}

func memoryMax(root fs.FS, dir string) jobsize.Limit {
	b, err := fs.ReadFile(root, path.Join(dir, "memory.max"))
	if err != nil {
		return jobsize.Limit{}
	}
	if string(b) == "max\n" {
		return jobsize.Off()
	}
	n, ok := parseNumber(b)
	if !ok {
		return jobsize.Limit{}
	}
	return jobsize.Known(n)
}

// lower returns the lower of two limits. What is off is above every number, and
// what is unknown gives way.
func lower(a, b jobsize.Limit) jobsize.Limit {
	n, known := a.Value()
	m, known2 := b.Value()
	if known && (!known2 || n <= m) || b == (jobsize.Limit{}) {
		return a
	}
	return b
}
