package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/jobsize"
)

func TestSettings(t *testing.T) {
	limits := Limits{Size: jobsize.Size{Mem: 64, CPU: 200}, CPUs: jobsize.Known(150), PIDs: 100}
	want := []Setting{
		{"memory.max", "67108864"},
		{"memory.swap.max", "0"},
		{"memory.oom.group", "0"},
		{"cpu.weight", "79"},
		{"cpu.max", "150000 100000"},
		{"pids.max", "100"},
	}
	if diff := cmp.Diff(want, limits.Settings()); diff != "" {
		t.Errorf("Settings (-want +got):\n%s", diff)
	}
	limits = Limits{Size: jobsize.Size{Mem: 4096, CPU: 200}, Shares: 1024}
	want = []Setting{
		{"memory.max", "4294967296"},
		{"memory.swap.max", "0"},
		{"memory.oom.group", "0"},
		{"cpu.weight", "39"},
		{"cpu.max", "max 100000"},
		{"pids.max", "512"},
	}
	if diff := cmp.Diff(want, limits.Settings()); diff != "" {
		t.Errorf("Settings with defaults (-want +got):\n%s", diff)
	}
}

// Whatever is applied passes the judgement of what is read back.
func TestSettingsPassReadBack(t *testing.T) {
	for _, cpu := range []jobsize.Centi{25, 100, 150, 200, 800, 25600} {
		for _, ceiling := range []jobsize.Limit{{}, jobsize.Off(), jobsize.Known(25), jobsize.Known(330)} {
			l := Limits{Size: jobsize.Size{Mem: 100, CPU: cpu}, CPUs: ceiling, PIDs: 64}
			r := Readings{}
			for _, s := range l.Settings() {
				r[s.File] = s.Text
			}
			for _, f := range r.Judge(l)[3:] {
				if f.Verdict != OK {
					t.Errorf("%d centi under %v: %+v, want ok", cpu, ceiling, f)
				}
			}
		}
	}
}
