package cgroup

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

func BenchmarkLiveUsage(b *testing.B) {
	l := testLeaf(b, testParent(b), "usage", small)
	b.ReportAllocs()
	for b.Loop() {
		if Usage(l.Dir()) == nil {
			b.Fatal("Usage = nil")
		}
	}
}

// BenchmarkLiveStart compares a bare start with one inside a leaf that is there,
// and with one whose leaf is made and removed around it.
func BenchmarkLiveStart(b *testing.B) {
	p := testParent(b)
	run := func(b *testing.B, l *Leaf) {
		cmd := exec.Command("/bin/true")
		if l != nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: l.FD()}
		}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			run(b, nil)
		}
	})
	b.Run("in-leaf", func(b *testing.B) {
		l := testLeaf(b, p, "start", small)
		for b.Loop() {
			run(b, l)
		}
	})
	b.Run("with-leaf", func(b *testing.B) {
		for b.Loop() {
			l, err := p.Create("test", "start", small)
			if err != nil {
				b.Fatal(err)
			}
			run(b, l)
			if err := errors.Join(l.Kill(b.Context()), l.Remove()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
