package container

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

// BenchmarkStart compares what a leaf adds to the start and end of a process.
// One round of each, in turn, is one iteration: what disturbs the machine
// disturbs all alike. bare/op and the others are their times, leaf/bare the
// ratio.
func BenchmarkStart(b *testing.B) {
	p := newBoundProcess(b)
	limits := cgroup.Limits{Size: jobsize.Size{Mem: 64, CPU: 100}}
	leaf, err := p.parent.Create("bench", "kept", limits)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	rounds := []struct {
		name string
		run  func() error
	}{
		{"bare", func() error { return exec.Command("/bin/true").Run() }},
		{"leaf", func() error { return runIn(leaf) }},
		{"fresh-leaf", func() error {
			n++
			fresh, err := p.parent.Create("bench", fmt.Sprint("fresh-", n), limits)
			if err != nil {
				return err
			}
			if err := runIn(fresh); err != nil {
				return err
			}
			return fresh.Remove()
		}},
		{"supervised", func() error {
			_, err := p.Run(context.Background(), smallSpec("", "/bin/true"), IO{Key: exit.NewKey()})
			return err
		}},
	}
	times := make([]time.Duration, len(rounds))
	for b.Loop() {
		for i, round := range rounds {
			start := time.Now()
			if err := round.run(); err != nil {
				b.Fatal(err)
			}
			times[i] += time.Since(start)
		}
	}
	if err := leaf.Remove(); err != nil {
		b.Error(err)
	}
	for i, round := range rounds {
		b.ReportMetric(float64(times[i].Microseconds())/float64(b.N), round.name+"-us/op")
		b.ReportMetric(float64(times[i])/float64(times[0]), round.name+"/bare")
	}
}

func runIn(leaf *cgroup.Leaf) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf.FD()}
	return cmd.Run()
}
