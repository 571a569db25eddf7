package cgroup

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestSelf(t *testing.T) {
	tests := []struct {
		host string
		want Own
	}{
		{"v2", Own{Version: V2, Path: "/jobs/run-1", Dir: "/sys/fs/cgroup/jobs/run-1"}},
		{"v2-old-kernel", Own{Version: V2, Path: "/jobs/run-1", Dir: "/sys/fs/cgroup/jobs/run-1"}},
		{"v2-root", Own{Version: V2, Path: "/", Reason: ReasonRoot}},
		{"private-namespace", Own{Version: V2, Path: "/", Dir: "/sys/fs/cgroup"}},
		{"foreign-namespace", Own{Version: V2, Path: "/", Reason: ReasonNotVisible}},
		{"nested-slice", Own{
			Version: V2, Path: "/dispatch.slice/dispatch-jobs.slice/docker-0a1b2c.scope",
			Dir: "/sys/fs/cgroup/dispatch.slice/dispatch-jobs.slice/docker-0a1b2c.scope",
		}},
		{"v1", Own{Version: V1, Path: "/docker/0a1b", Reason: ReasonV1}},
		{"hybrid", Own{Version: Hybrid, Path: "/docker/0a1b", Reason: ReasonHybrid}},
		{"systemd-v1-only-name", Own{Version: V2, Path: "/jobs/run-1", Dir: "/sys/fs/cgroup/jobs/run-1"}},
		{"removed", Own{Version: V2, Path: "/jobs/run-9 (deleted)", Reason: ReasonGone}},
		{"named-deleted", Own{Version: V2, Path: "/jobs/run-9 (deleted)", Dir: "/sys/fs/cgroup/jobs/run-9 (deleted)"}},
	}
	hosts, err := os.ReadDir("testdata/hosts")
	if err != nil || len(hosts) != len(tests) {
		t.Errorf("testdata/hosts has %d hosts, %v, want the %d that are read here", len(hosts), err, len(tests))
	}
	for _, tt := range tests {
		root := "testdata/hosts/" + tt.host
		got := SelfIn(os.DirFS(root))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("SelfIn(%q) (-want +got):\n%s", tt.host, diff)
		}
		if (got.Dir == "") != (got.Reason != "") {
			t.Errorf("SelfIn(%q) = %+v, want a directory or a reason", tt.host, got)
		}
		if got.Reason != "" && got.Usage() != nil {
			t.Errorf("SelfIn(%q).Usage() is not nil, with reason %q", tt.host, got.Reason)
		}
	}
}

func TestSelfWithoutCgroups(t *testing.T) {
	v2 := "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	tests := []struct{ name, cgroup, mountinfo string }{
		{"nothing", "", ""},
		{"no mount", "0::/jobs/run-1\n", ""},
		{"no line", "", v2},
		{"a line that is cut", "0:", v2},
		{"a relative path", "0::jobs\n", v2},
		{"another file system", "0::/\n", "30 23 0:27 / /sys/fs/cgroup rw - tmpfs cgroup2 rw\n"},
		{"a mount that is cut", "0::/\n", "30 23 0:27 / - cgroup2 cgroup2 rw\n"},
	}
	for _, tt := range tests {
		root := fstest.MapFS{}
		if tt.cgroup != "" {
			root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(tt.cgroup)}
		}
		if tt.mountinfo != "" {
			root["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte(tt.mountinfo)}
		}
		if diff := cmp.Diff(Own{Reason: ReasonNoCgroups}, SelfIn(root)); diff != "" {
			t.Errorf("%s: SelfIn (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What is mounted in a container may be a part of the tree, or stand elsewhere.
func TestSelfOfOtherMounts(t *testing.T) {
	tests := []struct {
		name, cgroup, mountinfo, dir string
		want                         Own
	}{
		{
			"a bind mount of the own cgroup", "0::/docker/0a1b\n", "30 23 0:27 /docker/0a1b /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "sys/fs/cgroup",
			Own{Version: V2, Path: "/docker/0a1b", Dir: "/sys/fs/cgroup"},
		},
		{
			"a bind mount of a neighbour", "0::/docker/0a1b2\n", "30 23 0:27 /docker/0a1b /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "sys/fs/cgroup",
			Own{Version: V2, Path: "/docker/0a1b2", Reason: ReasonNotVisible},
		},
		{
			"a space in the mount point", "0::/a:b:c\n", `30 23 0:27 / /mnt/c\040g rw - cgroup2 cgroup rw` + "\n", "mnt/c g/a:b:c",
			Own{Version: V2, Path: "/a:b:c", Dir: "/mnt/c g/a:b:c"},
		},
		{
			"a foreign mount before the right one", "0::/run\n",
			"29 23 0:27 /../.. /old rw - cgroup2 cgroup rw\n30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "sys/fs/cgroup/run",
			Own{Version: V2, Path: "/run", Dir: "/sys/fs/cgroup/run"},
		},
		{
			"a path that climbs", "0::/../jobs/run-1\n", "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "sys/fs/jobs/run-1",
			Own{Version: V2, Path: "/../jobs/run-1", Reason: ReasonNotVisible},
		},
	}
	for _, tt := range tests {
		got := SelfIn(fstest.MapFS{
			"proc/self/cgroup":        {Data: []byte(tt.cgroup)},
			"proc/self/mountinfo":     {Data: []byte(tt.mountinfo)},
			tt.dir + "/cgroup.events": {Data: []byte("populated 1\n")},
		})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: SelfIn (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestParseMemberships(t *testing.T) {
	const text = "0::/system.slice/kubepods-pod1.slice:cri-containerd:abc\n" +
		"12:cpu,cpuacct:/a:b:c\n" +
		"1:name=systemd:/\n" +
		"3::/v2-has-hierarchy-0\n" +
		"0:memory:/hierarchy-0-has-none\n" +
		"no colon\n\n" +
		"7:pids:/last without a newline"
	want := []membership{
		{nil, "/system.slice/kubepods-pod1.slice:cri-containerd:abc"},
		{[]string{"cpu", "cpuacct"}, "/a:b:c"},
		{[]string{"name=systemd"}, "/"},
		{[]string{"pids"}, "/last without a newline"},
	}
	if diff := cmp.Diff(want, parseMemberships([]byte(text)), cmp.AllowUnexported(membership{})); diff != "" {
		t.Errorf("parseMemberships (-want +got):\n%s", diff)
	}
}

func FuzzSelf(f *testing.F) {
	f.Add("0::/jobs/run-1\n", "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	f.Add("4:memory:/a\n0::/a\n", "30 23 0:27 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	f.Add("0::/../..\n", `30 23 0:27 / /sys\040fs rw - cgroup2 cgroup2 rw`)
	f.Add("0::/x (deleted)\n", "30 23 0:27 /x / rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, cgroup, mountinfo string) {
		for _, m := range parseMounts([]byte(mountinfo)) {
			for _, c := range parseMemberships([]byte(cgroup)) {
				dir, ok := m.dirOf(c.path)
				point := strings.Trim(m.point, "/")
				if ok && !climbs(m.point) && !strings.HasPrefix(dir+"/", cleaned(point)) {
					t.Errorf("%+v.dirOf(%q) = %q, want a directory below the mount point", m, c.path, dir)
				}
			}
		}
		own := SelfIn(fstest.MapFS{
			"proc/self/cgroup":    {Data: []byte(cgroup)},
			"proc/self/mountinfo": {Data: []byte(mountinfo)},
		})
		if own.Dir != "" || own.Reason == "" {
			t.Errorf("SelfIn on a host without cgroup files = %+v, want a reason", own)
		}
	})
}

// cleaned returns a mount point as a prefix of the directories below it.
func cleaned(point string) string {
	var parts []string
	for p := range strings.SplitSeq(point, "/") {
		if p != "" && p != "." {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "/") + "/"
}
