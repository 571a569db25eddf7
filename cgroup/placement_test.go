package cgroup

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/jobsize"
)

var compareLimits = cmp.Comparer(func(a, b jobsize.Limit) bool { return a == b })

func TestPlace(t *testing.T) {
	quota := jobsize.Known(330)
	slice := "/dispatch.slice/dispatch-jobs.slice"
	manager := "/user.slice/user-1000.slice/user@1000.service"
	tests := []struct {
		name, host string
		claim      Claim
		want       Placement
	}{
		{
			"no parent expected", "v2",
			Claim{Recorded: "/anything", PID: 4301},
			Placement{Verdict: OK},
		},
		{
			"under a bare name", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4242, Budget: quota},
			Placement{Verdict: OK, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"recorded as a path", "v2",
			Claim{Expected: "jobs", Recorded: "/jobs", PID: 4242, Budget: quota},
			Placement{Verdict: OK, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"expected as a path", "v2",
			Claim{Expected: "/jobs/", Recorded: "jobs", PID: 4242, Budget: quota},
			Placement{Verdict: OK, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"another parent recorded", "v2",
			Claim{Expected: "jobs", Recorded: "otherjobs", PID: 4242, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOtherParent}, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"no parent recorded", "v2",
			Claim{Expected: "jobs", PID: 4242, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOtherParent}, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"recorded, but the process is beside it", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4300, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOutside}, Path: "/jobs-2/run-1", Quota: quota},
		},
		{
			"recorded, but the process is at the root", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4301, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOutside}, Path: "/", Quota: quota},
		},
		{
			"in the parent itself, not below it", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4304, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOutside}, Path: "/jobs", Quota: quota},
		},
		{
			"a folder of the parent's name inside a container", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4303, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOutside}, Path: "/docker/0a1b/jobs/run-1", Quota: quota},
		},
		{
			"no pid", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteUnreadable}, Quota: quota},
		},
		{
			"a process in a VM", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 99999, Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteUnreadable}, Quota: quota},
		},
		{
			"a process outside this namespace", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4302, Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteUnreadable}, Quota: quota},
		},
		{
			"another quota than the budget", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4242, Budget: jobsize.Known(400)},
			Placement{Verdict: Warned, Notes: []Note{NoteQuota}, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"a quota without a budget", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4242, Budget: jobsize.Off()},
			Placement{Verdict: Warned, Notes: []Note{NoteQuota}, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"an unknown budget", "v2",
			Claim{Expected: "jobs", Recorded: "jobs", PID: 4242},
			Placement{Verdict: Warned, Notes: []Note{NoteQuota}, Path: "/jobs/run-1", Quota: quota},
		},
		{
			"no quota and no budget", "nested-slice",
			Claim{Expected: "dispatch.slice", Recorded: "dispatch.slice", PID: 4242, Budget: jobsize.Off()},
			Placement{Verdict: OK, Path: slice + "/docker-0a1b2c.scope", Quota: jobsize.Off()},
		},
		{
			"a parent that is not there", "v2",
			Claim{Expected: "gone", Recorded: "gone", Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteUnreadable, NoteQuota}},
		},
		{
			"a parent that climbs", "v2",
			Claim{Expected: "../jobs", Recorded: "../jobs", PID: 4242, Budget: quota},
			Placement{Verdict: Failed, Notes: []Note{NoteOutside, NoteQuota}, Path: "/jobs/run-1"},
		},
		{
			"a nested slice", "nested-slice",
			Claim{Expected: "dispatch-jobs.slice", Recorded: "dispatch-jobs.slice", PID: 4242, Budget: quota},
			Placement{Verdict: OK, Path: slice + "/docker-0a1b2c.scope", Quota: quota},
		},
		{
			"a nested slice, recorded as a path", "nested-slice",
			Claim{Expected: "dispatch-jobs.slice", Recorded: slice, PID: 4242, Budget: quota},
			Placement{Verdict: OK, Path: slice + "/docker-0a1b2c.scope", Quota: quota},
		},
		{
			"below a user's systemd", "nested-slice",
			Claim{Expected: "dispatch-jobs.slice", Recorded: "dispatch-jobs.slice", PID: 4243, Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteQuota}, Path: manager + slice + "/libpod-0a1b2c.scope"},
		},
		{
			"below what looks like a user's systemd", "nested-slice",
			Claim{Expected: "dispatch-jobs.slice", Recorded: "dispatch-jobs.slice", PID: 4244, Budget: quota},
			Placement{
				Verdict: Failed, Notes: []Note{NoteOutside}, Quota: quota,
				Path: "/user.slice/user-1000.slice/user@1001.service" + slice + "/libpod-0a1b2c.scope",
			},
		},
		{
			"hybrid: the v1 hierarchy of the controller, and no cpu.max", "hybrid",
			Claim{Expected: "docker", Recorded: "docker", PID: 4242, Budget: quota},
			Placement{Verdict: Warned, Notes: []Note{NoteQuota}, Path: "/docker/0a1b"},
		},
	}
	for _, tt := range tests {
		got := Place(os.DirFS("testdata/hosts/"+tt.host), tt.claim)
		if diff := cmp.Diff(tt.want, got, compareLimits); diff != "" {
			t.Errorf("%s: Place(%+v) (-want +got):\n%s", tt.name, tt.claim, diff)
		}
	}
}

func TestSlicePath(t *testing.T) {
	tests := []struct{ name, want string }{
		{"a.slice", "/a.slice"},
		{"a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice"},
		{"a-b", "/a-b"},
		{"x/a-b.slice", "/x/a-b.slice"},
		{"", "/"},
	}
	for _, tt := range tests {
		if got := slicePath(tt.name); got != tt.want {
			t.Errorf("slicePath(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}
