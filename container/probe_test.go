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
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			spec := probeSpec(t)
			spec.Network = network
			report, err := d.Probe(t.Context(), ProbeConfig{Spec: spec})
			if err != nil || !report.OK() || len(report) != 8 {
				t.Errorf("Probe = %+v, %v, want all eight ok", report, err)
			}
		})
	}
}

// Whatever is weakened makes exactly its own property fail. Each row makes the
// part of the probe that is to find it; the last one a whole probe.
func TestProbeFindsWeakness(t *testing.T) {
	inside := probe.inside
	tests := []struct {
		name  string
		part  func(probe, context.Context) []Check
		rules []string
		spec  func(*Spec)
		want  string
	}{
		{"nothing", inside, nil, nil, ""},
		{"capability kept", inside, []string{"--cap-drop=ALL\t--cap-drop=NET_RAW"}, nil, "isolation fail"},
		{"new privileges allowed", inside, []string{"--security-opt=no-new-privileges\t"}, nil, "isolation fail"},
		{"memory flag dropped", inside, []string{"--memory=\t--memory=128m", "--memory-swap=\t--memory-swap=128m"}, nil, "isolation fail"},
		{"swap allowed", inside, []string{"--memory-swap=\t--memory-swap=128m"}, nil, "isolation fail"},
		{"pids flag dropped", inside, []string{"--pids-limit\t"}, nil, "isolation fail"},
		{"CPU flag dropped", inside, []string{"--cpus\t"}, nil, "isolation fail"},
		{"shares dropped", inside, []string{"--cpu-shares\t"}, nil, "isolation fail"},
		{"user 0", inside, []string{"--user\t--user=0:0"}, nil, "nonRoot fail"},
		{"user 0 by the spec", inside, nil, func(s *Spec) { s.User, s.AllowRoot = "0:0", true }, "nonRoot fail"},
		{"a mount more", inside, []string{"--init=false\t--volume=/usr:/extra:ro"}, nil, "mountSet fail"},
		{"writable root", inside, []string{"--read-only\t"}, nil, "mountSet fail"},
		{"other folder", probe.localFolders, []string{"--mount\t--tmpfs=/probe"}, nil, "localFolders fail"},
		{"pull allowed", probe.imagePinning, []string{"--pull=never\t--pull=missing"}, nil, "imagePinning fail"},
		{"one volume for all", probe.ephemeral, []string{"--tmpfs=/tmp\t--volume=dispatch-probe-test:/tmp"}, func(s *Spec) { s.User, s.AllowRoot = "0:0", true }, "ephemeral fail"},
		{"shared network", nil, []string{"--network=\t--network=bridge"}, nil, "jobToJob fail"},
	}
	t.Cleanup(func() { _ = exec.Command("docker", "volume", "rm", "dispatch-probe-test").Run() })
	t.Run("all", func(t *testing.T) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				d := newWeakDocker(t, test.rules...)
				config := ProbeConfig{Spec: probeSpec(t)}
				if test.spec != nil {
					test.spec(&config.Spec)
				}
				var report Report
				var err error
				if test.part == nil {
					report, err = d.Probe(t.Context(), config)
				} else {
					report = test.part(d.newProbe(config), t.Context())
				}
				if err != nil || len(report) == 0 || report.OK() != (test.want == "") || verdicts(report) != test.want {
					t.Errorf("Probe = %s (%+v), %v, want %s alone", verdicts(report), report, err, test.want)
				}
			})
		}
	})
}

func TestProbeCgroupParent(t *testing.T) {
	config := ProbeConfig{Spec: probeSpec(t)}
	config.Spec.CgroupParent = "/dispatch-probe-test"
	d := newDocker(t, shortGrace)
	if r := d.newProbe(config).cgroupParent(t.Context()); len(r) != 1 || r[0].Verdict != cgroup.OK && r[0].Verdict != cgroup.Warned {
		t.Errorf("cgroupParent = %+v, want it placed", r)
	}
	weak := newWeakDocker(t, "--cgroup-parent\t")
	if r := weak.newProbe(config).cgroupParent(t.Context()); verdicts(r) != "cgroupParent fail" {
		t.Errorf("cgroupParent without the flag = %+v, want it to fail", r)
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
