package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/internal/lab"
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

// A probe of a real host that lacks something prints what in JSON, and exits with
// 1. testdata/docker/probe.txtar holds one that lacks nothing.
func TestProbeJSON(t *testing.T) {
	lab.Docker(t)
	image := lab.Image(t, "docker")
	// No quota is set there, so that what all jobs may use together does not hold.
	code, out, errs := typed(t, "", "probe", "-json", "-runtime", "docker", "-data", t.TempDir(),
		"-parent", "dispatch-probe-test", "-parent-cpus", "0.5", image)
	if want := "worker probe: not every property was read back and holds"; code != exitFailed || !strings.HasPrefix(errs, want) {
		t.Errorf("probe -json = %d, %q, want %d and %q", code, errs, exitFailed, want)
	}
	checkJSON(t, "probe", out)
	var got probed
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.OK || got.Runtime != "docker" {
		t.Errorf("probe -json prints %s, want ok to be false under docker: %v", out, err)
	}
	lacking := map[container.Property]bool{}
	for _, property := range got.Properties {
		if property.Verdict != cgroup.OK && property.Verdict != cgroup.Warned {
			lacking[property.Property] = property.Why != ""
		}
	}
	if diff := cmp.Diff(map[container.Property]bool{container.CgroupParent: true}, lacking); diff != "" {
		t.Errorf("properties that lack something, and whether they say why (-want +got):\n%s", diff)
	}
}
