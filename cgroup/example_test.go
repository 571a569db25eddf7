package cgroup_test

import (
	"fmt"
	"testing/fstest"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

// The bounds of a job are a list of files and what goes into them.
func ExampleLimits_Settings() {
	limits := cgroup.Limits{Size: jobsize.Size{Mem: 512, CPU: 100}, CPUs: jobsize.Known(150), PIDs: 64}
	for _, s := range limits.Settings() {
		fmt.Println(s.File, s.Text)
	}
	// Output:
	// memory.max 536870912
	// memory.swap.max 0
	// memory.oom.group 0
	// cpu.weight 39
	// cpu.max 150000 100000
	// pids.max 64
}

// What the kernel did not give stays nil: it is never 0.
func ExampleUsageFS() {
	used := cgroup.UsageFS(fstest.MapFS{
		"memory.peak":   {Data: []byte("104857600\n")},
		"memory.events": {Data: []byte("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n")},
	})
	fmt.Println(*used.MemPeak, *used.OOMKills, used.CPUUsec == nil)
	// Output: 104857600 1 true
}
