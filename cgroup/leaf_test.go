package cgroup

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestLeafName(t *testing.T) {
	got, err := leafName("host-1_A", "0a1b-2")
	if got != "dispatch-host-1_A.0a1b-2" || err != nil {
		t.Errorf("leafName = %q, %v", got, err)
	}
	bad := []string{"", ".", "..", "a/b", "../x", "/x", "a.b", "a b", "a\nb", "a\x00b", "é", strings.Repeat("a", 101)}
	for _, name := range bad {
		for _, pair := range [][2]string{{name, "run"}, {"instance", name}} {
			got, err := leafName(pair[0], pair[1])
			if !errors.Is(err, ErrName) || got != "" {
				t.Errorf("leafName(%q, %q) = %q, %v, want ErrName", pair[0], pair[1], got, err)
			}
		}
	}
	long := strings.Repeat("a", 100)
	if got, err := leafName(long, long); len(got) > 255 || err != nil {
		t.Errorf("leafName of two names of 100 = %d bytes, %v, want at most 255", len(got), err)
	}
}

func TestOfInstance(t *testing.T) {
	tests := []struct {
		leaf, instance string
		want           bool
	}{
		{"dispatch-a-1.run", "a-1", true},
		{"dispatch-a-10.run", "a-1", false},
		{"dispatch-a-1.run", "a-10", false},
		{"dispatch-a-1", "a-1", false},
		{"a-1.run", "a-1", false},
		{"dispatch-.run", "", true}, // No leaf has this name: an instance is never "".
		{"docker", "a-1", false},
	}
	for _, tt := range tests {
		if got := ofInstance(tt.leaf, tt.instance); got != tt.want {
			t.Errorf("ofInstance(%q, %q) = %v, want %v", tt.leaf, tt.instance, got, tt.want)
		}
	}
}

func TestUndelegated(t *testing.T) {
	memory := []string{"memory.max", "memory.swap.max"}
	all := append(slices.Clone(memory), "cpu.weight", "cpu.max", "pids.max")
	tests := []struct {
		parent     string
		readOnly   bool
		missing    []string // words of each entry
		unenforced []string
	}{
		{parent: "delegated"},
		{"pids-off", false, []string{"+pids"}, []string{"pids.max"}},
		{"memory-disabled-at-boot", false, []string{"memory is not available"}, memory},
		{"holds-processes", false, []string{"holds processes"}, all},
		{"threaded", false, []string{"cannot be listed", "threaded"}, all},
		{"bare", false, []string{"memory is not", "cpu is not", "pids is not"}, all},
		{"delegated", true, []string{"no permission"}, all},
		{"pids-off", true, []string{"+pids", "no permission"}, all},
	}
	for _, tt := range tests {
		e := undelegated(fsReader(os.DirFS("testdata/parents/"+tt.parent)), !tt.readOnly)
		if len(tt.missing) == 0 {
			if e != nil {
				t.Errorf("undelegated(%s) = %v, want nil", tt.parent, e)
			}
			continue
		}
		if e == nil || len(e.Missing) != len(tt.missing) || !slices.Equal(e.Unenforced, tt.unenforced) {
			t.Errorf("undelegated(%s) = %+v, want %q missing and %q not enforced", tt.parent, e, tt.missing, tt.unenforced)
			continue
		}
		for i, words := range tt.missing {
			if !strings.Contains(e.Missing[i], words) {
				t.Errorf("undelegated(%s) misses %q, want %q in it", tt.parent, e.Missing[i], words)
			}
		}
		if !errors.Is(e, ErrNotDelegated) || !strings.Contains(e.Error(), e.Missing[0]) {
			t.Errorf("undelegated(%s): error %v, want ErrNotDelegated with what is missing", tt.parent, e)
		}
	}
}
