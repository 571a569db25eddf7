package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// CgroupParent returns the directory of a cgroup v2 that is this test's own and
// has the controllers that a job's size needs on for its children. It is removed
// after the test, which fails when the test left a cgroup in it.
func CgroupParent(t testing.TB) string {
	t.Helper()
	const way = "; run the tests as root on a host with cgroup v2, or in internal/lab/cgroup2-vm"
	var st unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &st); err != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
		Missing(t, "cgroup2", cgroupRoot+" is not cgroup v2"+way)
	}
	on, _ := os.ReadFile(cgroupRoot + "/cgroup.subtree_control")
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if !slices.Contains(strings.Fields(string(on)), controller) {
			Missing(t, "cgroup2", controller+" is off below "+cgroupRoot+way)
		}
	}
	dir, err := os.MkdirTemp(cgroupRoot, "dispatch-test-")
	if err != nil {
		Missing(t, "cgroup2", "no cgroup can be made: "+err.Error()+way)
	}
	t.Cleanup(func() { removeCgroup(t, dir) })
	if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte("+memory +cpu +pids"), 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

func removeCgroup(t testing.TB, dir string) {
	left, _ := filepath.Glob(dir + "/*/cgroup.procs")
	for _, procs := range left {
		child := filepath.Dir(procs)
		t.Errorf("cgroup %s is left", filepath.Base(child))
		_ = os.WriteFile(child+"/cgroup.kill", []byte("1"), 0)
		for range 100 {
			if err := os.Remove(child); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Errorf("remove the test's cgroup: %v", err)
	}
}
