package worker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// A size reaches the kernel: the weight of a job's CPU time is one that its
// shares may become.
func TestLiveProcessWeights(t *testing.T) {
	parent := lab.CgroupParent(t)
	sizes := []string{"0.25", "1", "2", "8", "256"}
	var jobs []houseJob
	for _, cpus := range sizes {
		jobs = append(jobs, houseJob{
			name: cpus + " CPUs",
			spec: container.Spec{Args: []string{"sh", "-c", `cat "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/cpu.weight"`}},
			size: jobsize.Request{CPUs: cpus, Memory: "64m"}, want: goesWell,
			check: func(t *testing.T, j *houseJob) {
				size, err := jobsize.Resolve(jobsize.Request{CPUs: cpus}, jobsize.Request{})
				if err != nil {
					t.Fatal(err)
				}
				var weight int64
				if _, err := fmt.Sscan(j.text, &weight); err != nil {
					t.Fatalf("read a weight from %q: %v", j.text, err)
				}
				want := jobsize.Weights(size.Shares())
				t.Logf("%s CPUs are %d shares: the kernel has a weight of %d of %v", cpus, size.Shares(), weight, want)
				if !slices.Contains(want, weight) {
					t.Errorf("cpu.weight is %d, want one of %v", weight, want)
				}
			},
		})
	}
	newProcessHouse(t, parent).run(jobs...)
}
