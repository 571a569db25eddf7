package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMemoryNow(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{{"8192\n", 8192, true}, {"0\n", 0, true}, {"", 0, false}, {"max\n", 0, false}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "memory.current"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := (Own{Dir: dir}).MemoryNow(); got != tt.want || ok != tt.ok {
			t.Errorf("MemoryNow with %q = %d, %v, want %d, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	for _, dir := range []string{"", t.TempDir()} {
		if got, ok := (Own{Dir: dir}).MemoryNow(); got != 0 || ok {
			t.Errorf("MemoryNow without a file = %d, %v, want none", got, ok)
		}
	}
}

func TestOf(t *testing.T) {
	if got, want := Of(os.Getpid()), Self(); got != want {
		t.Errorf("Of(this process) = %+v, Self() = %+v", got, want)
	}
	if got := Of(1 << 30); got.Reason != ReasonNoCgroups {
		t.Errorf("Of(no process) = %+v, want the reason %q", got, ReasonNoCgroups)
	}
}

func TestLiveOf(t *testing.T) {
	leaf := testLeaf(t, testParent(t), "of", small)
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	own := Of(cmd.Process.Pid)
	if own.Dir != leaf.Dir() {
		t.Errorf("Of(a process of the leaf) = %+v, want %q", own, leaf.Dir())
	}
	if now, ok := own.MemoryNow(); !ok || now < 0 || now > small.Size.Mem.Bytes() {
		t.Errorf("MemoryNow() = %d, %v, want at most the limit", now, ok)
	}
}
