package container

import (
	"strings"
	"testing"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

func TestFactsPodman(t *testing.T) {
	const rest = `"cpus":2,"memTotal":1024},"version":{"Version":"4.3.1"}}`
	base := Facts{Version: "4.3.1", CPUs: jobsize.Known(2), Memory: jobsize.Known(1024)}
	facts := func(change func(*Facts)) Facts {
		f := base
		change(&f)
		return f
	}
	all := strings.Join(sizeFlags, " ")
	tests := []struct {
		name, host string
		want       Facts
		unenforced string
	}{
		{"as root, all there", `"cgroupManager":"systemd","cgroupVersion":"v2","cgroupControllers":["cpuset","cpu","io","memory","pids"],"security":{"rootless":false},`,
			facts(func(f *Facts) { f.Driver, f.Cgroup = "systemd", "v2" }), ""},
		{"as root, on v1", `"cgroupManager":"cgroupfs","cgroupVersion":"v1","cgroupControllers":null,`,
			facts(func(f *Facts) { f.Driver, f.Cgroup = "cgroupfs", "v1" }), ""},
		{"rootless, on v1", `"cgroupManager":"cgroupfs","cgroupVersion":"v1","security":{"rootless":true},`,
			facts(func(f *Facts) { f.Driver, f.Cgroup, f.Rootless = "cgroupfs", "v1", true }), all + " --cgroup-parent"},
		{"rootless, nothing delegated", `"cgroupManager":"cgroupfs","cgroupVersion":"v2","cgroupControllers":["cpu","memory","pids"],"security":{"rootless":true},`,
			facts(func(f *Facts) { f.Driver, f.Cgroup, f.Rootless = "cgroupfs", "v2", true }), all},
		{"rootless, some delegated", `"cgroupManager":"systemd","cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true},`,
			facts(func(f *Facts) { f.Driver, f.Cgroup, f.Rootless = "systemd", "v2", true }), "--cpu-shares --cpus"},
		{"none delegated", `"cgroupManager":"systemd","cgroupVersion":"v2","cgroupControllers":[],"security":{"rootless":true},`,
			facts(func(f *Facts) { f.Driver, f.Cgroup, f.Rootless = "systemd", "v2", true }), "--memory --memory-swap --cpu-shares --cpus --pids-limit"},
		{"controllers not said", `"cgroupManager":"systemd","cgroupVersion":"v2",`,
			facts(func(f *Facts) { f.Driver, f.Cgroup = "systemd", "v2" }), ""},
		{"a version of another kind", `"cgroupVersion":2,"cgroupManager":7,`, base, ""},
	}
	for _, test := range tests {
		got, err := podmanFacts([]byte(`{"host":{` + test.host + rest))
		if test.want.Unenforced = strings.Fields(test.unenforced); err != nil || !equalFacts(got, test.want) {
			t.Errorf("%s: podmanFacts = %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
	for _, text := range []string{"", "null", "[]", "{}", `{"host":{},"version":{}}`, `{"version":{"Version":4}}`, "\x7fELF"} {
		if got, err := podmanFacts([]byte(text)); err == nil || !equalFacts(got, Facts{}) {
			t.Errorf("podmanFacts(%q) = %+v, %v, want an error and nothing else", text, got, err)
		}
	}
}

// What a Spec says is in force on cgroup v2.
func TestPodmanEnforces(t *testing.T) {
	p, image := newPodman(t)
	spec := smallSpec(image)
	spec.CPUs, spec.PIDs = jobsize.Known(50), 64
	report := Report(p.newProbe(ProbeConfig{Spec: spec}).inside(t.Context()))
	if len(report) != 3 || !report.OK() {
		t.Errorf("the probe of one container = %+v, want three ok", report)
	}
	spec.CgroupParent = "/dispatch-probe-test"
	placed := p.newProbe(ProbeConfig{Spec: spec}).cgroupParent(t.Context())
	if v := placed[0].Verdict; v != cgroup.OK && v != cgroup.Warned {
		t.Errorf("cgroupParent = %+v, want it placed", placed)
	}
}
