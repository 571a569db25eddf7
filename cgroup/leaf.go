package cgroup

import (
	"fmt"
	"strings"
)

// leafPrefix marks a cgroup as made by this package: a sweep touches no other.
const leafPrefix = "dispatch-"

// maxName bounds each of the two names in a leaf's name. A file name holds 255
// bytes.
const maxName = 100

// leafName returns the name of the cgroup of one run of one worker process. The
// instance ends at the only dot, so that a sweep of instance a-1 never takes a
// leaf of a-10. The prefix keeps the name apart from the kernel's own files.
func leafName(instance, name string) (string, error) {
	for _, s := range []string{instance, name} {
		if !isName(s) {
			return "", fmt.Errorf("%w: %.*q", ErrName, maxName, s)
		}
	}
	return leafPrefix + instance + "." + name, nil
}

// ofInstance reports whether a cgroup's name is that of a leaf of the instance.
func ofInstance(leaf, instance string) bool {
	rest, ours := strings.CutPrefix(leaf, leafPrefix)
	owner, _, dotted := strings.Cut(rest, ".")
	return ours && dotted && owner == instance
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}
