package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// The test binary under this name is a client that weakens what it is given:
// each line of the file beside it replaces one argument ("old\tnew", an empty
// new one drops it), and then it becomes docker.
const weakName = "weak-docker"

func init() {
	if filepath.Base(os.Args[0]) != weakName {
		return
	}
	path, err := exec.LookPath("docker")
	if err != nil {
		os.Exit(99)
	}
	rules, _ := os.ReadFile(os.Args[0] + ".rules")
	argv := []string{path}
	for _, arg := range os.Args[1:] {
		for rule := range strings.Lines(string(rules)) {
			old, replacement, _ := strings.Cut(strings.TrimSuffix(rule, "\n"), "\t")
			if strings.HasPrefix(arg, old) {
				arg = replacement
			}
		}
		if arg != "" {
			argv = append(argv, arg)
		}
	}
	fmt.Println(syscall.Exec(path, argv, os.Environ()))
	os.Exit(99)
}

// newWeakDocker returns a runtime whose client weakens each run.
func newWeakDocker(t *testing.T, rules ...string) *Docker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), weakName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".rules", []byte(strings.Join(rules, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return newDocker(t, shortGrace, func(c *DockerConfig) { c.Client = path })
}

func probeSpec(t *testing.T) Spec {
	spec := smallSpec(lab.Image(t, "docker"))
	spec.CPUs = jobsize.Known(50)
	spec.PIDs = 64
	return spec
}

// verdicts are the properties that did not pass.
func verdicts(r Report) string {
	var all []string
	for _, c := range r {
		if c.Verdict != cgroup.OK {
			all = append(all, fmt.Sprintf("%s %s", c.Property, c.Verdict))
		}
	}
	return strings.Join(all, ", ")
}

func TestProbe(t *testing.T) {
	d := newDocker(t, shortGrace)
	for _, network := range []string{NetworkNone, NetworkPrivate} {
		spec := probeSpec(t)
		spec.Network = network
		report, err := d.Probe(t.Context(), ProbeConfig{Spec: spec})
		if err != nil || !report.OK() || len(report) != 8 {
			t.Errorf("Probe with network %s = %+v, %v, want all eight ok", network, report, err)
		}
	}
}

// Whatever is weakened makes exactly its own property fail.
func TestProbeFindsWeakness(t *testing.T) {
	tests := []struct {
		name  string
		rules []string
		spec  func(*Spec)
		want  string
	}{
		{"capability kept", []string{"--cap-drop=ALL\t--cap-drop=NET_RAW"}, nil, "isolation fail"},
		{"new privileges allowed", []string{"--security-opt=no-new-privileges\t"}, nil, "isolation fail"},
		{"memory flag dropped", []string{"--memory=\t--memory=128m", "--memory-swap=\t--memory-swap=128m"}, nil, "isolation fail"},
		{"swap allowed", []string{"--memory-swap=\t--memory-swap=128m"}, nil, "isolation fail"},
		{"pids flag dropped", []string{"--pids-limit\t"}, nil, "isolation fail"},
		{"CPU flag dropped", []string{"--cpus\t"}, nil, "isolation fail"},
		{"shares dropped", []string{"--cpu-shares\t"}, nil, "isolation fail"},
		{"user 0", []string{"--user\t--user=0:0"}, nil, "nonRoot fail"},
		{"user 0 by the spec", nil, func(s *Spec) { s.User, s.AllowRoot = "0:0", true }, "nonRoot fail"},
		{"pull allowed", []string{"--pull=never\t--pull=missing"}, nil, "imagePinning fail"},
		{"a mount more", []string{"--init=false\t--volume=/usr:/extra:ro"}, nil, "mountSet fail"},
		{"writable root", []string{"--read-only\t"}, nil, "mountSet fail"},
		{"shared network", []string{"--network=\t--network=bridge"}, nil, "jobToJob fail"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newWeakDocker(t, test.rules...)
			spec := probeSpec(t)
			if test.spec != nil {
				test.spec(&spec)
			}
			report, err := d.Probe(t.Context(), ProbeConfig{Spec: spec})
			if err != nil || report.OK() || verdicts(report) != test.want {
				t.Errorf("Probe = %s (%+v), %v, want %s alone", verdicts(report), report, err, test.want)
			}
		})
	}
}

func TestProbeCgroupParent(t *testing.T) {
	d := newDocker(t, shortGrace)
	spec := probeSpec(t)
	spec.CgroupParent = "/dispatch-probe-test"
	report, err := d.Probe(t.Context(), ProbeConfig{Spec: spec})
	if err != nil || len(report) != 8 {
		t.Fatalf("Probe = %+v, %v", report, err)
	}
	if c := report[7]; c.Property != CgroupParent || c.Verdict != cgroup.OK && c.Verdict != cgroup.Warned {
		t.Errorf("cgroupParent = %+v, want it placed", c)
	}
	weak := newWeakDocker(t, "--cgroup-parent\t")
	report, err = weak.Probe(t.Context(), ProbeConfig{Spec: spec})
	if err != nil || verdicts(report) != "cgroupParent fail" {
		t.Errorf("Probe without the flag = %s (%+v), %v, want cgroupParent fail", verdicts(report), report, err)
	}
}

// An interrupted probe leaves nothing, whenever that is; newDocker checks.
func TestProbeInterrupted(t *testing.T) {
	d := newDocker(t, shortGrace)
	for _, after := range []time.Duration{50 * time.Millisecond, time.Second, 3 * time.Second} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, ErrCancelled)
		report, err := d.Probe(ctx, ProbeConfig{Spec: probeSpec(t)})
		cancel()
		if report != nil && err != nil {
			t.Errorf("Probe = %+v beside %v", report, err)
		}
		if left := filesBelow(t, d.config.Instance.files()); len(left) > 0 {
			t.Errorf("an interrupted probe left %v", left)
		}
	}
}

func TestProbeRefuses(t *testing.T) {
	lab.Docker(t)
	for _, daemon := range []string{"tcp://127.0.0.1:2375", "ssh://host"} {
		d, err := NewDocker(DockerConfig{Instance: newTestInstance(t, t.TempDir()), Daemon: daemon})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := d.Probe(t.Context(), ProbeConfig{Spec: smallSpec("image")}); !errors.Is(err, ErrRemote) || report != nil {
			t.Errorf("Probe of %s = %+v, %v, want ErrRemote", daemon, report, err)
		}
	}
	d := newDocker(t)
	if report, err := d.Probe(t.Context(), ProbeConfig{Spec: smallSpec("dispatch-lab-absent:none")}); !errors.Is(err, ErrImageMissing) || report != nil {
		t.Errorf("Probe of a missing image = %+v, %v, want ErrImageMissing", report, err)
	}
}
