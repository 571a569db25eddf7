package cgroup

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type exitError = exec.ExitError

// On a host without cgroup v2 there is always a folder that is none.
func TestOpenParentErrors(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		path string
		want error
		says string
	}{
		{dir, ErrNotV2, "systemd.unified_cgroup_hierarchy=1"},
		{filepath.Join(dir, "missing"), fs.ErrNotExist, "make it first"},
		{"relative", nil, "absolute"},
		{dir + "/../x", nil, "absolute"},
		{dir + "/", nil, "absolute"},
		{"", nil, "absolute"},
	}
	for _, tt := range tests {
		p, err := OpenParent(tt.path)
		if p != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("OpenParent(%q) = %v, %v, want %v with %q", tt.path, p, err, tt.want, tt.says)
		}
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("OpenParent(%q): the error %q holds the path", tt.path, err)
		}
	}
}
