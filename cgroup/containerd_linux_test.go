package cgroup

import (
	"slices"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/edgehero/dispatch/jobsize"
)

// The curved mapping is the one that container runtimes took from this library.
func TestCurveIsContainerds(t *testing.T) {
	n := 0
	for shares := int64(jobsize.MinShares); shares <= jobsize.MaxShares; shares++ {
		weights := jobsize.Weights(shares)
		want := int64(cgroup2.ConvertCPUSharesToCgroupV2Value(uint64(shares)))
		if len(weights) == 0 || weights[len(weights)-1] != want {
			t.Fatalf("Weights(%d) = %d, want the curved one to be %d", shares, weights, want)
		}
		n++
	}
	t.Logf("%d shares compared", n)
}

// containerd's manager sees in a leaf what was asked for, and can end it.
func TestLiveContainerdSeesTheLeaf(t *testing.T) {
	p := testParent(t)
	l := testLeaf(t, p, "interop", small)
	m, err := cgroup2.Load(strings.TrimPrefix(l.Dir(), "/sys/fs/cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	start(t, l, "stay")
	stat, err := m.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if got := stat.GetMemory().GetUsageLimit(); got != uint64(small.Size.Mem.Bytes()) {
		t.Errorf("the manager reads memory.max %d, want %d", got, small.Size.Mem.Bytes())
	}
	if got := stat.GetMemory().GetSwapLimit(); got != 0 {
		t.Errorf("the manager reads memory.swap.max %d, want 0", got)
	}
	if got := stat.GetPids().GetLimit(); got != uint64(small.PIDs) {
		t.Errorf("the manager reads pids.max %d, want %d", got, small.PIDs)
	}
	on, err := m.Controllers()
	for _, c := range []string{"memory", "cpu", "pids"} {
		if err != nil || !slices.Contains(on, c) {
			t.Errorf("the manager sees the controllers %q, %v, want %s", on, err, c)
		}
	}
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := l.Kill(t.Context()); err != nil {
		t.Errorf("Kill after the manager's: %v", err)
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
}
