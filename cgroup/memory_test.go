package cgroup

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/edgehero/dispatch/jobsize"
)

func TestEvents(t *testing.T) {
	tests := []struct {
		text  string
		want  Events
		ok    bool
		cause Cause
	}{
		{"low 0\nhigh 0\nmax 200\noom 7\noom_kill 1\n", Events{7, 1}, true, OwnLimit},
		{"oom 1\noom_kill 1\n", Events{1, 1}, true, OwnLimit},
		// A limit above it: the count of oom is there, not here.
		{"max 0\noom 0\noom_kill 1\n", Events{0, 1}, true, OtherLimit},
		{"oom 1\noom_kill 2\n", Events{1, 2}, true, AnyLimit},
		// The limit was hit and nothing was killed: an allocation failed.
		{"oom 3\noom_kill 0\n", Events{3, 0}, true, NoKill},
		{"xoom_kill 5\noom_kill_disable 0\noom 2\noom_kill 2\n", Events{2, 2}, true, OwnLimit},
		// Before Linux 4.13, and cgroup v1: unknown, which is not "no kill".
		{"low 0\nhigh 0\nmax 0\noom 4\n", Events{}, false, NoKill},
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", Events{}, false, NoKill},
		{"", Events{}, false, NoKill},
	}
	for _, tt := range tests {
		got, ok := parseEvents([]byte(tt.text))
		if got != tt.want || ok != tt.ok || got.Cause() != tt.cause {
			t.Errorf("parseEvents(%q) = %+v, %v (cause %q), want %+v, %v (%q)", tt.text, got, ok, got.Cause(), tt.want, tt.ok, tt.cause)
		}
	}
}

func TestMemoryLimits(t *testing.T) {
	known, off := jobsize.Known, jobsize.Off()
	host := os.DirFS("testdata/hosts/v2")
	own, above := MemoryLimits(host, "/sys/fs/cgroup/jobs/run-1")
	if own != known(64<<20) || above != known(256<<20) {
		t.Errorf("MemoryLimits of a job of 64 MiB in a parent of 256 MiB = %v, %v", own, above)
	}
	tests := []struct {
		name       string
		tree       map[string]string
		own, above jobsize.Limit
	}{
		{"two in a slice that is lower than each", map[string]string{"a": "268435456\n", "a/b": "max\n", "a/b/c": "536870912\n"}, known(512 << 20), known(256 << 20)},
		{"the lowest of several", map[string]string{"a": "30\n", "a/b": "20\n", "a/b/c": "10\n"}, known(10), known(20)},
		{"no bound anywhere", map[string]string{"a": "max\n", "a/b": "max\n", "a/b/c": "max\n"}, off, off},
		{"nothing above", map[string]string{"a/b/c": "10\n"}, known(10), jobsize.Limit{}},
		{"nothing", nil, jobsize.Limit{}, jobsize.Limit{}},
		{"not a number", map[string]string{"a/b": "x\n", "a/b/c": "\n"}, jobsize.Limit{}, jobsize.Limit{}},
	}
	for _, tt := range tests {
		tree := fstest.MapFS{}
		for dir, text := range tt.tree {
			tree[dir+"/memory.max"] = &fstest.MapFile{Data: []byte(text)}
		}
		own, above := MemoryLimits(tree, "/a/b/c")
		if own != tt.own || above != tt.above {
			t.Errorf("%s: MemoryLimits = %v, %v, want %v, %v", tt.name, own, above, tt.own, tt.above)
		}
	}
}
