package worker_test

import (
	"testing"

	"github.com/edgehero/dispatch/internal/lab"
)

// A few more are killed whose jobs are processes in leaves, of which none may be
// left.
func TestCrashInLeaf(t *testing.T) {
	testCrash(t, crashSite{Supervisor: []string{selfPath(t), "supervise"}, Parent: lab.CgroupParent(t)}, max(crashKills(t)/10, 1))
}
