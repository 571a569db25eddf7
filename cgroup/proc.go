package cgroup

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// A membership is one line of /proc/<pid>/cgroup:
//
//	4:memory:/docker/0a1b
//	2:cpu,cpuacct:/docker/0a1b
//	0::/system.slice/a:b.service
//
// The line of cgroup v2 has no controllers. Only the first two colons separate.
type membership struct {
	controllers []string
	path        string
}

func parseMemberships(b []byte) []membership {
	var all []membership
	for line := range bytes.Lines(b) {
		hierarchy, rest, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		controllers, cgroup, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !strings.HasPrefix(cgroup, "/") || (hierarchy == "0") != (controllers == "") {
			continue
		}
		m := membership{path: cgroup}
		if controllers != "" {
			m.controllers = strings.Split(controllers, ",")
		}
		all = append(all, m)
	}
	return all
}

// sizePath returns the path in the hierarchy that bounds a process's size: the
// v1 hierarchy of a controller that a size needs, when there is one, since what
// v1 holds cgroup v2 lacks, else that of cgroup v2.
func sizePath(all []membership) (cgroup string, v1, ok bool) {
	for _, need := range []string{"memory", "cpu", "pids"} {
		for _, m := range all {
			if slices.Contains(m.controllers, need) {
				return m.path, true, true
			}
		}
	}
	for _, m := range all {
		if len(m.controllers) == 0 {
			return m.path, false, true
		}
	}
	return "", false, false
}

// A mount is a cgroup2 line of /proc/self/mountinfo:
//
//	30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
//
// root is the path of the cgroup that is shown at point. A root like /../.. is
// of another cgroup namespace.
type mount struct{ root, point string }

func parseMounts(b []byte) []mount {
	var all []mount
	for line := range bytes.Lines(b) {
		front, back, ok := strings.Cut(string(line), " - ")
		if kind, _, _ := strings.Cut(back, " "); !ok || kind != "cgroup2" {
			continue
		}
		fields := strings.Fields(front)
		if len(fields) < 6 || !strings.HasPrefix(fields[3], "/") || !strings.HasPrefix(fields[4], "/") {
			continue
		}
		all = append(all, mount{root: unescape(fields[3]), point: unescape(fields[4])})
	}
	return all
}

// unescape undoes what the kernel does to the characters that separate fields.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// dirOf returns the directory that shows a cgroup at this mount, as a path of an
// fs.FS of the whole host. Nothing climbs out of the mount point.
func (m mount) dirOf(cgroup string) (dir string, ok bool) {
	if climbs(m.root) || climbs(cgroup) {
		return "", false
	}
	rel, ok := strings.CutPrefix(cgroup, strings.TrimSuffix(m.root, "/"))
	if !ok || rel != "" && rel[0] != '/' {
		return "", false
	}
	dir = strings.TrimPrefix(path.Join(m.point, rel), "/")
	if dir == "" {
		dir = "."
	}
	return dir, true
}

func climbs(p string) bool {
	return slices.Contains(strings.Split(p, "/"), "..")
}
