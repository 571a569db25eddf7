package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/container"
)

func TestProbed(t *testing.T) {
	report := container.Report{
		{Property: container.Isolation, Verdict: cgroup.Failed, Why: "x", Values: []cgroup.Finding{
			{Name: "CapBnd", Verdict: cgroup.Failed, Got: "1\x1b[7m", Want: "0"}, {Name: "pids.max", Verdict: cgroup.NotReadBack, Want: "64"},
		}},
		{Property: container.Ephemeral, Verdict: cgroup.OK},
		{Property: container.CgroupParent, Verdict: cgroup.Warned},
		{Property: container.JobToJob, Verdict: cgroup.NotReadBack, Why: "no nc"},
	}
	out := probedOf("docker", report)
	if out.OK || out.holding() != 2 {
		t.Errorf("probedOf: ok %v, %d holding, want false, 2", out.OK, out.holding())
	}
	var text bytes.Buffer
	if err := out.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"isolation ", "  CapBnd      fail", "1\uFFFD[7m", "  pids.max    not read back      -      64\n", "\n  no nc\n", "docker: 2 of 4 properties hold\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
	if probedOf("docker", nil).OK {
		t.Error("a probe of nothing is ok")
	}
}
