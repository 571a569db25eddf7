package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/edgehero/dispatch/internal/lab"
)

// childParent makes a cgroup below p, with these controllers on for its own
// children, and with a process in it if pid is not 0.
func childParent(t *testing.T, p *Parent, controllers string, pid int) string {
	t.Helper()
	dir := filepath.Join(p.path, "child")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d, err := openDir(dir)
		child := &Leaf{path: dir, dir: d}
		if err := errors.Join(err, child.Kill(context.Background()), child.Remove()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte(controllers), 0); err != nil {
		t.Fatal(err)
	}
	if pid != 0 {
		if err := os.WriteFile(dir+"/cgroup.procs", fmt.Append(nil, pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLiveBadInput(t *testing.T) {
	p := testParent(t)
	l := testLeaf(t, p, "run", small)
	tests := []struct {
		name string
		call func() error
		want error
		says string
	}{
		{"a leaf that is there", func() error { _, err := p.Create("test", "run", small); return err }, fs.ErrExist, "dispatch-test.run"},
		{"a slash", func() error { _, err := p.Create("test", "a/b", small); return err }, ErrName, `"a/b"`},
		{"dots", func() error { _, err := p.Create("..", "run", small); return err }, ErrName, `".."`},
		{"no memory", func() error { _, err := p.Create("test", "none", Limits{}); return err }, nil, "above 0"},
		{"negative pids", func() error {
			_, err := p.Create("test", "none", Limits{Size: small.Size, PIDs: -1})
			return err
		}, nil, "above 0"},
		{"a number that the kernel refuses", func() error {
			_, err := p.Create("test", "none", Limits{Size: small.Size, PIDs: 1 << 40})
			return err
		}, syscall.EINVAL, "into pids.max"},
		{"a parent that is not there", func() error { _, err := OpenParent(p.path + "/gone"); return err }, fs.ErrNotExist, "make it first"},
		{"a parent with a process", func() error {
			_, err := OpenParent(childParent(t, testParent(t), "", start(t, nil, "idle").Process.Pid))
			return err
		}, ErrNotDelegated, "it holds processes"},
		{"a parent without a controller", func() error {
			_, err := OpenParent(childParent(t, testParent(t), "+cpu +pids", 0))
			return err
		}, ErrNotDelegated, "controller memory is off"},
		{"the root", func() error { _, err := OpenParent("/sys/fs/cgroup"); return err }, ErrNotDelegated, "it holds processes"},
		{"a watch of nothing", func() error { _, err := WatchOOM(p.path + "/gone"); return err }, fs.ErrNotExist, "memory.events"},
	}
	for _, tt := range tests {
		err := tt.call()
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "/sys/fs") {
			t.Errorf("%s: error %v, want %v with %q and no path", tt.name, err, tt.want, tt.says)
		}
	}
	if names, err := p.Leaves("test"); err != nil || !slices.Equal(names, []string{filepath.Base(l.Dir())}) {
		t.Errorf("after errors there are %q, %v, want only the leaf that was there", names, err)
	}
}

func TestLiveNoPermission(t *testing.T) {
	p := testParent(t)
	if os.Getuid() != 0 {
		lab.Missing(t, "root", "run the tests as root to become another user")
	}
	for mode, says := range map[os.FileMode]string{
		0o700: "give its folder to this user",
		0o755: "no permission to make cgroups in it",
	} {
		if err := os.Chmod(p.path, mode); err != nil {
			t.Fatal(err)
		}
		cmd := command(t.Context(), nil, "open")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Stdin = strings.NewReader(p.path + "\n")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("OpenParent of a folder of mode %v as nobody: %s%v, want %q", mode, out, err, says)
		}
	}
}
