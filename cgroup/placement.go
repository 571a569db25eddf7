package cgroup

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/edgehero/dispatch/jobsize"
)

// A Verdict is what a check came to.
type Verdict string

// The verdicts.
const (
	OK          Verdict = "ok"
	Warned      Verdict = "ok with a warning"
	Failed      Verdict = "fail"
	NotReadBack Verdict = "not read back" // never counts as a pass
)

// A Note says what a [Placement] is worth less for, or why it failed.
type Note string

// The notes. The first two fail a placement, the others warn.
const (
	NoteOtherParent Note = "recorded-parent-differs"
	NoteOutside     Note = "process-outside-parent"
	// NoteUnreadable: the process is in a VM or another namespace.
	NoteUnreadable Note = "process-not-readable"
	// NoteQuota: no host reserve holds across jobs.
	NoteQuota Note = "parent-quota-is-not-the-budget"
)

// A Claim is what is said of a container's place.
type Claim struct {
	// Expected is the parent that the venue runs its jobs under: a bare name
	// or a path. A venue that has none expects none, and is always ok.
	Expected string
	// Recorded is the parent that the runtime recorded.
	Recorded string
	// PID is the container's first process, 0 when it is not known.
	PID int
	// Budget is the CPU budget that the parent should hold all jobs to, in
	// hundredths of a CPU.
	Budget jobsize.Limit
}

// A Placement is where a container really is.
type Placement struct {
	Verdict Verdict // OK, Warned or Failed
	Notes   []Note
	// Path is the process's cgroup as seen from here, "" when not readable.
	Path string
	// Quota is what the parent's cpu.max allows, in hundredths of a CPU.
	Quota jobsize.Limit
}

// Place decides where a container is. root is the root directory of the host.
//
// A container is under its parent when the runtime recorded that parent and its
// process, where it can be seen, is below it. The process is the better witness:
// rootless Podman on cgroup v1 records a parent and does nothing.
func Place(root fs.FS, c Claim) Placement {
	if c.Expected == "" {
		return Placement{Verdict: OK}
	}
	var p Placement
	parents := possibleParents(c)
	if !isRecorded(c.Recorded, c.Expected) {
		p.fail(NoteOtherParent)
	}
	if p.Path = processPath(root, c.PID); p.Path == "" {
		p.warn(NoteUnreadable)
	} else if parent, ok := parentOf(p.Path, parents); ok {
		parents = []string{parent}
	} else {
		p.fail(NoteOutside)
	}
	if p.Quota = parentQuota(root, parents); !sameBound(p.Quota, c.Budget) {
		p.warn(NoteQuota)
	}
	if p.Verdict == "" {
		p.Verdict = OK
	}
	return p
}

func (p *Placement) fail(n Note) {
	p.Verdict = Failed
	p.Notes = append(p.Notes, n)
}

func (p *Placement) warn(n Note) {
	if p.Verdict != Failed {
		p.Verdict = Warned
	}
	p.Notes = append(p.Notes, n)
}

// isRecorded reports whether the recorded parent is the expected one: its bare
// name, or a path that ends in it.
func isRecorded(recorded, expected string) bool {
	expected = strings.Trim(expected, "/")
	recorded = strings.Trim(recorded, "/")
	return recorded == expected || strings.HasSuffix(recorded, "/"+expected)
}

// possibleParents returns the paths that the expected parent may have.
func possibleParents(c Claim) []string {
	expected := strings.Trim(c.Expected, "/")
	parents := []string{"/" + expected}
	if strings.HasPrefix(c.Recorded, "/") && isRecorded(c.Recorded, c.Expected) {
		parents = append(parents, path.Clean(c.Recorded))
	}
	return append(parents, slicePath(expected))
}

// slicePath returns where systemd puts a slice: a-b.slice is inside a.slice.
func slicePath(name string) string {
	stem, ok := strings.CutSuffix(name, ".slice")
	if !ok || strings.Contains(name, "/") {
		return "/" + name
	}
	var p strings.Builder
	for i := range stem {
		if stem[i] == '-' {
			p.WriteString("/" + stem[:i] + ".slice")
		}
	}
	return p.String() + "/" + name
}

// processPath returns the cgroup of a process, "" when it cannot be read from
// here: no such process, or one outside this cgroup namespace.
func processPath(root fs.FS, pid int) string {
	if pid <= 0 {
		return ""
	}
	b, err := fs.ReadFile(root, "proc/"+strconv.Itoa(pid)+"/cgroup")
	if err != nil {
		return ""
	}
	p, _, ok := sizePath(parseMemberships(b))
	if !ok || climbs(p) {
		return ""
	}
	return p
}

// parentOf returns the parent that a process is below. The parent must stand at
// the start of the path: inside its own cgroup a job may name a folder as it
// likes. The one thing that may stand before it is a user's own systemd.
func parentOf(process string, parents []string) (parent string, ok bool) {
	manager := userManager(process)
	for _, p := range parents {
		if strings.HasPrefix(process, p+"/") {
			return p, true
		}
		if manager != "" && strings.HasPrefix(process, manager+p+"/") {
			return manager + p, true
		}
	}
	return "", false
}

// userManager returns the cgroup of the user's systemd that a path starts with,
// /user.slice/user-1000.slice/user@1000.service, or "".
func userManager(process string) string {
	parts := strings.SplitN(process, "/", 5)
	if len(parts) < 5 || parts[1] != "user.slice" {
		return ""
	}
	user, ok := strings.CutPrefix(parts[2], "user-")
	user, ok2 := strings.CutSuffix(user, ".slice")
	if _, isUID := digits([]byte(user)); !ok || !ok2 || !isUID || parts[3] != "user@"+user+".service" {
		return ""
	}
	return strings.Join(parts[:4], "/")
}

// parentQuota reads cpu.max of the first parent that is there. Without one the
// quota is unknown.
func parentQuota(root fs.FS, parents []string) jobsize.Limit {
	mountinfo, _ := fs.ReadFile(root, "proc/self/mountinfo")
	for _, m := range parseMounts(mountinfo) {
		for _, p := range parents {
			dir, ok := m.dirOf(p)
			if !ok {
				continue
			}
			if b, err := fs.ReadFile(root, path.Join(dir, "cpu.max")); err == nil {
				quota, _ := jobsize.ParseCPUMax(string(b))
				return quota
			}
		}
	}
	return jobsize.Limit{}
}

// sameBound reports whether both are the same number or both off. What is
// unknown is the same as nothing.
func sameBound(a, b jobsize.Limit) bool {
	_, known := a.Value()
	return a == b && (known || a.IsOff())
}
