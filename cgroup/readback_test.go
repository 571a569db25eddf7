package cgroup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/jobsize"
)

// probe is the output of a probe in a container of 64 MiB and 2 CPUs under a
// ceiling of 1.5 CPUs.
const probe = "Name:\tsh\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t1\n" +
	"Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\n" +
	"CapInh:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n" +
	"memory.max:67108864\nmemory.swap.max:0\ncpu.weight:79\ncpu.max:150000 100000\npids.max:512\n"

var probed = Limits{Size: jobsize.Size{Mem: 64, CPU: 200}, CPUs: jobsize.Known(150)}

func TestJudge(t *testing.T) {
	want := []Finding{
		{"CapBnd", OK, "0", "0"},
		{"NoNewPrivs", OK, "1", "1"},
		{"Uid", OK, "65534 65534 65534 65534", "not 0"},
		{"pids.max", OK, "512", "512"},
		{"memory.max", OK, "67108864", "67108864"},
		{"memory.swap.max", OK, "0", "0"},
		{"cpu.max", OK, "150000 100000", "150000 100000"},
		{"cpu.weight", OK, "79", "79 or 174"},
	}
	if diff := cmp.Diff(want, ParseReadings([]byte(probe)).Judge(probed)); diff != "" {
		t.Errorf("Judge (-want +got):\n%s", diff)
	}
}

// Each line of the probe, read differently, changes the verdict of its property
// and of no other.
func TestJudgeOneLine(t *testing.T) {
	tests := []struct {
		name, value string
		want        Verdict
		got         string
	}{
		{"CapBnd", "00000000a80425fb", Failed, "a80425fb"},
		{"CapBnd", "ffffffffffffffff", Failed, "ffffffffffffffff"},
		{"CapBnd", "none", NotReadBack, ""},
		{"CapBnd", "", NotReadBack, ""},
		{"NoNewPrivs", "0", Failed, "0"},
		{"NoNewPrivs", "yes", NotReadBack, ""},
		{"Uid", "0\t0\t0\t0", Failed, "0 0 0 0"},
		{"Uid", "1000\t0\t1000\t1000", Failed, "1000 0 1000 1000"},
		{"Uid", "1000\t1000\t1000\t00", Failed, "1000 1000 1000 0"},
		{"Uid", "1000", NotReadBack, ""},
		{"Uid", "1000 1000 1000 -1", NotReadBack, ""},
		{"pids.max", "max", Failed, "max"},
		{"pids.max", "511", Failed, "511"},
		{"pids.max", "", NotReadBack, ""},
		{"memory.max", "max", Failed, "max"},
		{"memory.max", "67108865", Failed, "67108865"},
		{"memory.max", "9223372036854771712", NotReadBack, ""}, // Past 2^53.
		{"memory.swap.max", "max", Failed, "max"},
		{"memory.swap.max", "67108864", Failed, "67108864"},
		{"cpu.max", "max 100000", Failed, "max 100000"},
		{"cpu.max", "200000 100000", Failed, "200000 100000"},
		{"cpu.max", "75000 50000", OK, "150000 100000"},
		{"cpu.max", "150000 0", NotReadBack, ""},
		{"cpu.max", "150000", NotReadBack, ""},
		{"cpu.weight", "174", OK, "174"},
		{"cpu.weight", "100", NotReadBack, "100"},
		{"cpu.weight", "idle", NotReadBack, ""},
	}
	for _, tt := range tests {
		var lines []string
		for line := range strings.Lines(probe) {
			if strings.HasPrefix(line, tt.name+":") {
				line = tt.name + ":" + tt.value + "\n"
			}
			lines = append(lines, line)
		}
		for _, f := range ParseReadings([]byte(strings.Join(lines, ""))).Judge(probed) {
			switch {
			case f.Name == tt.name && (f.Verdict != tt.want || f.Got != tt.got):
				t.Errorf("Judge with %s:%s = %+v, want %q, read as %q", tt.name, tt.value, f, tt.want, tt.got)
			case f.Name != tt.name && f.Verdict != OK:
				t.Errorf("Judge with %s:%s = %+v, want ok", tt.name, tt.value, f)
			}
		}
	}
}

// What is not there, or stands there twice with different values, is no pass.
func TestJudgeWhatIsMissing(t *testing.T) {
	for _, output := range []string{"", "\x00\xff:\n::\n", probe + strings.NewReplacer(
		"0000000000000000", "1", "\t1\n", "\t2\n", "65534", "7", "67108864", "1", "swap.max:0", "swap.max:1",
		":79", ":80", "150000 ", "1000 ", "512", "1").Replace(probe)} {
		for _, f := range ParseReadings([]byte(output)).Judge(probed) {
			if f.Verdict != NotReadBack || f.Got != "" {
				t.Errorf("Judge of %.20q = %+v, want not read back", output, f)
			}
		}
	}
	twice := ParseReadings([]byte(probe + probe)).Judge(probed)
	if diff := cmp.Diff(ParseReadings([]byte(probe)).Judge(probed), twice); diff != "" {
		t.Errorf("Judge of the same output twice (-once +twice):\n%s", diff)
	}
}

func TestJudgeCeiling(t *testing.T) {
	tests := []struct {
		limit jobsize.Limit
		value string
		want  Verdict
	}{
		{jobsize.Off(), "max 100000", OK},
		{jobsize.Limit{}, "max 100000", OK},
		{jobsize.Off(), "150000 100000", Failed},
		{jobsize.Limit{}, "150000 100000", Failed},
		{jobsize.Known(25), "25000 100000", OK},
	}
	for _, tt := range tests {
		l := Limits{Size: probed.Size, CPUs: tt.limit}
		if got := (Readings{"cpu.max": tt.value}).cpuMax(l.CPUs); got.Verdict != tt.want {
			t.Errorf("cpu.max %q under a ceiling of %v = %+v, want %q", tt.value, tt.limit, got, tt.want)
		}
	}
}

func TestReadingsWeight(t *testing.T) {
	if n, ok := ParseReadings([]byte(probe)).Weight(); n != 79 || !ok {
		t.Errorf("Weight = %d, %v, want 79, true", n, ok)
	}
	if n, ok := (Readings{}).Weight(); n != 0 || ok {
		t.Errorf("Weight of nothing = %d, %v, want 0, false", n, ok)
	}
}

// Whatever a container prints, a pass takes the very value, and what is handed
// on was written by us.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(probe))
	f.Add([]byte("memory.max:max\nUid: 0 0 0 0\nCapBnd:zz\ncpu.max:1 1\n"))
	f.Add([]byte("Uid:\t1\t2\t3\t4\x1b[31m\npids.max:\t00512\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		findings := ParseReadings(output).Judge(probed)
		if len(findings) != 8 {
			t.Fatalf("Judge = %d findings, want 8", len(findings))
		}
		for _, f := range findings {
			if strings.Trim(f.Got, "0123456789abcdef mx") != "" {
				t.Errorf("Judge handed on %q", f.Got)
			}
			if f.Verdict == OK && f.Name != "Uid" && !strings.Contains(" or "+f.Want+" or ", " or "+f.Got+" or ") {
				t.Errorf("%s passes with %q, want %q", f.Name, f.Got, f.Want)
			}
			if f.Verdict != OK && f.Verdict != Failed && f.Verdict != NotReadBack {
				t.Errorf("%s has the verdict %q", f.Name, f.Verdict)
			}
		}
	})
}
