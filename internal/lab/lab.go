// Package lab gives tests the real parts they need: a Docker daemon, a Redis
// server, a kernel with cgroup v2. A part that is missing skips the test with
// the part's name, and fails it where DISPATCH_REQUIRE lists that part.
package lab

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Missing ends the test because a real part is not there. The test fails when
// the comma list in DISPATCH_REQUIRE names the part, else it is skipped. why
// says what was tried and how to get the part.
func Missing(t testing.TB, part, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("DISPATCH_REQUIRE"), ","), part) {
		t.Fatalf("%s is required (DISPATCH_REQUIRE) and missing: %s", part, why)
	}
	t.Skipf("needs %s: %s", part, why)
}
