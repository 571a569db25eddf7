package container

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// supervised returns jobs of a Docker under a mounted supervisor.
func supervised(t *testing.T) subject {
	t.Helper()
	d := newDocker(t, shortGrace)
	return d.mounted(t, d, lab.Image(t, "docker"))
}

// As the first process of a container the supervisor reaps what nobody else
// does.
func TestSupervisorReaps(t *testing.T) {
	s := supervised(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, ErrTimeout)
	defer cancel()
	const script = `
		for i in $(seq 50); do (true &); done
		while grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.1; done
		echo clean`
	var log logBuffer
	result, err := s.runtime.Run(ctx, s.shell(script), IO{Key: exit.NewKey(), Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, result, 0)
	if !strings.HasPrefix(log.String(), "clean\n") {
		t.Errorf("log = %q, want no zombie left", log.String())
	}
}

func TestSupervisorForwardsSignals(t *testing.T) {
	s := supervised(t)
	result := s.during(t, s.shell(`trap "exit 9" TERM; echo ready; while :; do sleep 0.1; done`), func() {})
	wantAborted(t, result, ErrCancelled)
	if result.Auth != exit.Verified || result.Line == nil || *result.Line.Code != 9 {
		t.Errorf("line = %+v, %q, want the 9 of a command that heard the SIGTERM", result.Line, result.Auth)
	}
}

func TestSupervisorOutlivesForkBomb(t *testing.T) {
	s := supervised(t)
	spec := s.shell(`bomb() { bomb | bomb & }; bomb; bomb; exit 7`)
	spec.PIDs = 64
	result, _ := s.run(t, spec)
	if result.Auth != exit.Verified || result.Line == nil || result.Code != int(*result.Line.Code) || result.Orphan {
		t.Errorf("Run = %+v, want a verified line with the container's own code", result)
	}
}

// Through Docker, too, one kind of memory kill alone is oom-killed with a peak
// that shows it.
func TestDockerMemoryKills(t *testing.T) {
	parent := lab.CgroupParent(t)
	s := supervised(t)
	hog := []string{"tail", "-c", "200000000", "/dev/zero"}
	tests := []struct {
		name                          string
		mem                           jobsize.MiB
		above                         string
		command                       []string
		code                          int
		oomKilled, kills, peakAtLimit bool
	}{
		{"at its own limit", 64, "max", hog, 137, true, true, true},
		{"a child at its own limit", 64, "max", []string{"sh", "-c", strings.Join(hog, " ") + "; exit 0"}, 0, false, true, true},
		{"at a limit above, well below its own", 512, "67108864", hog, 137, true, true, false},
		{"by a signal alone", 64, "max", []string{"sh", "-c", "kill -9 $$"}, 137, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(parent+"/memory.max", []byte(test.above), 0); err != nil {
				t.Fatal(err)
			}
			spec := s.spec(test.command...)
			spec.Size.Mem = test.mem
			spec.CgroupParent = filepath.Base(parent)
			result, log := s.run(t, spec)
			wantCode(t, result, test.code)
			wantMemoryKill(t, result, test.oomKilled, test.kills, test.peakAtLimit)
			if t.Failed() {
				t.Log(log)
			}
		})
	}
}

// wantMemoryKill checks what a line says of memory kills, and whether the peak
// reached the limit.
func wantMemoryKill(t *testing.T, result Result, oomKilled, kills, peakAtLimit bool) {
	t.Helper()
	line := result.Line
	if line == nil || line.Resources == nil || line.Resources.OOMKills == nil || line.Resources.MemPeak == nil {
		t.Fatalf("line = %+v, want one with kills and a peak", line)
	}
	if line.OOMKilled != oomKilled {
		t.Errorf("OOMKilled = %v, want %v", line.OOMKilled, oomKilled)
	}
	if n := *line.Resources.OOMKills; (n > 0) != kills {
		t.Errorf("OOMKills = %d, want some: %v", n, kills)
	}
	peak := *line.Resources.MemPeak
	if limit, _ := result.MemoryLimit.Value(); jobsize.PeakReachedLimit(peak, limit) != peakAtLimit {
		t.Errorf("peak of %d reached the limit of %d: want %v", peak, limit, peakAtLimit)
	}
}
