package cgroup

import (
	"bytes"
	"fmt"
	"slices"
)

// bounds lists what each controller that a job needs enforces.
var bounds = []struct {
	controller string
	files      []string
}{
	{"memory", []string{"memory.max", "memory.swap.max"}},
	{"cpu", []string{"cpu.weight", "cpu.max"}},
	{"pids", []string{"pids.max"}},
}

// undelegated returns what a parent lacks to take jobs, nil when it lacks
// nothing. writable says whether this process may make cgroups in it.
func undelegated(read readFile, writable bool) *NotDelegatedError {
	var e NotDelegatedError
	buf := make([]byte, fileSize)
	inChildren := words(read("cgroup.subtree_control", buf))
	here := words(read("cgroup.controllers", buf))
	for _, b := range bounds {
		if slices.Contains(inChildren, b.controller) {
			continue
		}
		e.Unenforced = append(e.Unenforced, b.files...)
		if slices.Contains(here, b.controller) {
			e.Missing = append(e.Missing, fmt.Sprintf("controller %s is off for its children: write +%[1]s into its cgroup.subtree_control", b.controller))
		} else {
			e.Missing = append(e.Missing, fmt.Sprintf("controller %s is not available: turn it on in every cgroup above it (systemd: Delegate=yes) and in the kernel", b.controller))
		}
	}
	// What follows stands in the way of any leaf at all.
	controllers := len(e.Missing)
	if procs := read("cgroup.procs", buf); procs == nil {
		e.Missing = append(e.Missing, "its processes cannot be listed: it must be a cgroup of type domain")
	} else if len(procs) > 0 {
		e.Missing = append(e.Missing, "it holds processes: move them, this program too, into a cgroup beside it")
	}
	if kind := read("cgroup.type", buf); kind != nil && string(bytes.TrimSpace(kind)) != "domain" {
		e.Missing = append(e.Missing, "it is threaded: jobs need a cgroup of type domain")
	}
	if !writable {
		e.Missing = append(e.Missing, "no permission to make cgroups in it: give its folder and its cgroup.procs to this user")
	}
	if len(e.Missing) > controllers {
		e.Unenforced = nil
		for _, b := range bounds {
			e.Unenforced = append(e.Unenforced, b.files...)
		}
	}
	if len(e.Missing) == 0 {
		return nil
	}
	return &e
}

// off returns the controllers that jobs need and that a parent has, but not its
// children.
func off(read readFile) (controllers []string) {
	buf := make([]byte, fileSize)
	inChildren := words(read("cgroup.subtree_control", buf))
	here := words(read("cgroup.controllers", buf))
	for _, b := range bounds {
		if slices.Contains(here, b.controller) && !slices.Contains(inChildren, b.controller) {
			controllers = append(controllers, b.controller)
		}
	}
	return controllers
}

func words(b []byte) []string {
	var all []string
	for w := range bytes.FieldsSeq(b) {
		all = append(all, string(w))
	}
	return all
}
