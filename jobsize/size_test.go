package jobsize

import (
	"math"
	"strings"
	"testing"
)

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]MiB{
		"64m": 64, "64M": 64, "512m": 512, "1024m": 1024, "1025m": 1025, "1g": 1024, "4g": 4096, "4G": 4096,
		"1024g": 1 << 20, "1048576m": 1 << 20,
	} {
		if got, err := ParseMemory(text); got != want || err != nil {
			t.Errorf("ParseMemory(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	checkRefused(t, ParseMemory, []string{"MiB (m)", "GiB (g)", "64m to 1024g"},
		"", "m", "g", "1024", "0", "0m", "00m", "064m", "63m", "1048577m", "1025g", "4gb", "4Gi", "4GiB", "4ib", "64k", "64mm",
		"1.5g", ".5g", "1.g", "1,5g", "0x10", "0x10m", "0x1p25m", "1e3m", "1_000m", "+4g", "-1", "-4g", "4 g", " 4g", "4g ", "4g\n",
		"4\u00a0g", "\u0661g", "\uff11g", "4\uff47", "NaN", "inf", "-inf", "1e308", "1e400", "nanm", "infg",
		"9223372036854775807m", "9223372036854775807g", "18446744073709551615m", "18446744073709551680m", "8388608t", "9000p",
		strings.Repeat("9", 1000)+"g", "\xff4g", "4g\x00",
	)
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string]Centi{
		"0.25": 25, "0.3": 30, "0.30": 30, "0.5": 50, "1": 100, "1.0": 100, "1.00": 100, "1.05": 105, "1.25": 125, "2": 200,
		"3.99": 399, "256": 25600, "256.0": 25600, "256.00": 25600,
	} {
		if got, err := ParseCPUs(text); got != want || err != nil {
			t.Errorf("ParseCPUs(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	checkRefused(t, ParseCPUs, []string{"0.25 to 256 CPUs", "at most two fraction digits"},
		"", ".", "0", "0.0", "0.00", "0.005", "0.01", "0.24", "0.2", "256.01", "256.1", "257", "1024", "1024m", "1000m", "250m",
		"1.", ".5", "1.234", "1.250", "00", "01", "00.5", "1..5", "1.5.5", "1,5", "+1", "-1", "-0.5", "0.-5", "1.+5", "1 ", " 1", "1\n", "1e2",
		"1.e1", "0x10", "0x1p3", "1_0", "NaN", "nan", "inf", "-inf", "Inf", "1e308", "1e400", "\uff11", "\u0661", "1.\uff15", "\xff",
		"9223372036854775807", "18446744073709551616", "92233720368547758.08", strings.Repeat("9", 1000),
	)
}

// checkRefused holds that each text is an error, which says the text, quoted and
// cut at 64 characters, and what is allowed; and that the value is then 0.
func checkRefused[T MiB | Centi](t *testing.T, parse func(string) (T, error), allowed []string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		got, err := parse(text)
		if got != 0 || err == nil {
			t.Errorf("parse(%q) = %v, %v, want 0 and an error", text, got, err)
			continue
		}
		for _, part := range append([]string{" is " + quote(text) + ", want "}, allowed...) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("parse(%q) error = %q, want it to say %q", text, err, part)
			}
		}
		if len(err.Error()) > 512 {
			t.Errorf("parse of %d bytes: the error has %d", len(text), len(err.Error()))
		}
	}
}

func TestErrorWording(t *testing.T) {
	_, memory := ParseMemory("4gb")
	_, cpus := ParseCPUs("250m")
	for _, c := range []struct {
		err  error
		want string
	}{
		{memory, `memory is "4gb", want a whole number of MiB (m) or GiB (g) from 64m to 1024g, such as 512m or 4g`},
		{cpus, `number of CPUs is "250m", want 0.25 to 256 CPUs as a decimal with at most two fraction digits, such as 2 or 0.5`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("error = %v, want %s", c.err, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	x64 := strings.Repeat("x", 64)
	wide := strings.Repeat("é", 64)
	for text, want := range map[string]string{
		"": `""`, "a\"b\n": `"a\"b\n"`, x64: `"` + x64 + `"`, x64 + "y": `"` + x64 + `"...`, wide: `"` + wide + `"`, wide + "y": `"` + wide + `"...`,
		strings.Repeat("\xff", 65): `"` + strings.Repeat(`\xff`, 64) + `"...`,
	} {
		if got := quote(text); got != want {
			t.Errorf("quote(%q) = %s, want %s", text, got, want)
		}
	}
}

// What is written always reads back to the same size, and has one spelling.
func TestSizesRoundTrip(t *testing.T) {
	for mem := MinMem; mem <= MaxMem; mem += 7 {
		if got, err := ParseMemory(mem.String()); got != mem || err != nil {
			t.Fatalf("ParseMemory(%q) = %d, %v, want %d", mem, got, err, mem)
		}
	}
	for cpu := MinCPU; cpu <= MaxCPU; cpu++ {
		if got, err := ParseCPUs(cpu.String()); got != cpu || err != nil {
			t.Fatalf("ParseCPUs(%q) = %d, %v, want %d", cpu, got, err, cpu)
		}
	}
}

func TestString(t *testing.T) {
	for mem, want := range map[MiB]string{64: "64m", 1023: "1023m", 1024: "1g", 1536: "1536m", 4096: "4g", 1 << 20: "1024g"} {
		if got := mem.String(); got != want {
			t.Errorf("MiB(%d).String() = %q, want %q", int64(mem), got, want)
		}
	}
	for cpu, want := range map[Centi]string{0: "0", 5: "0.05", 25: "0.25", 30: "0.3", 100: "1", 105: "1.05", 200: "2", 330: "3.3", 25600: "256", -150: "-1.5"} {
		if got := cpu.String(); got != want {
			t.Errorf("Centi(%d).String() = %q, want %q", int64(cpu), got, want)
		}
	}
	if got := MaxMem.Bytes(); got != 1<<40 {
		t.Errorf("MaxMem.Bytes() = %d, want %d", got, int64(1)<<40)
	}
}

func FuzzParseMemory(f *testing.F) {
	for _, text := range []string{"4g", "64m", "1048576M", "1e3m", "\uff11g", "18446744073709551616m", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mem, err := ParseMemory(text)
		if err != nil {
			if mem != 0 || len(err.Error()) > 512 {
				t.Fatalf("ParseMemory(%q) = %d and an error of %d bytes", text, mem, len(err.Error()))
			}
			return
		}
		back, err := ParseMemory(mem.String())
		if mem < MinMem || mem > MaxMem || back != mem || err != nil {
			t.Fatalf("ParseMemory(%q) = %d, which reads back as %d, %v", text, mem, back, err)
		}
	})
}

func FuzzParseCPUs(f *testing.F) {
	for _, text := range []string{"2", "0.25", "256.00", "1.234", "250m", "\uff11", "92233720368547758.08", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cpu, err := ParseCPUs(text)
		if err != nil {
			if cpu != 0 || len(err.Error()) > 512 {
				t.Fatalf("ParseCPUs(%q) = %d and an error of %d bytes", text, cpu, len(err.Error()))
			}
			return
		}
		back, err := ParseCPUs(cpu.String())
		if cpu < MinCPU || cpu > MaxCPU || back != cpu || err != nil {
			t.Fatalf("ParseCPUs(%q) = %d, which reads back as %d, %v", text, cpu, back, err)
		}
	})
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		project, env Request
		want         Size
	}{
		{Request{}, Request{}, Size{4096, 200, FromDefault}},
		{Request{}, Request{Memory: "1g"}, Size{1024, 200, FromEnv}},
		{Request{}, Request{CPUs: "0.5"}, Size{4096, 50, FromEnv}},
		{Request{Memory: "2g"}, Request{}, Size{2048, 200, FromProject}},
		{Request{CPUs: "1"}, Request{Memory: "1g"}, Size{1024, 100, FromProject}},
		{Request{CPUs: "1"}, Request{Memory: "1g", CPUs: "3"}, Size{1024, 100, FromProject}},
		{Request{Memory: "2g", CPUs: "1"}, Request{Memory: "1g", CPUs: "3"}, Size{2048, 100, FromProject}},
	} {
		if got, err := Resolve(c.project, c.env); got != c.want || err != nil {
			t.Errorf("Resolve(%v, %v) = %v, %v, want %v", c.project, c.env, got, err, c.want)
		}
	}
	good := Request{Memory: "1g", CPUs: "1"}
	for _, c := range []struct {
		project, env Request
		want         string
	}{
		{Request{Memory: "4gb"}, good, `job size from project: memory is "4gb"`},
		{Request{Memory: "1g", CPUs: "0"}, good, `job size from project: number of CPUs is "0"`},
		{Request{}, Request{Memory: "0"}, `job size from env: memory is "0"`},
		{good, Request{CPUs: "250m"}, `job size from env: number of CPUs is "250m"`},
	} {
		got, err := Resolve(c.project, c.env)
		if got != (Size{}) || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Resolve(%v, %v) = %v, %v, want %s", c.project, c.env, got, err, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit Limit
		n     int64
		known bool
		off   bool
		text  string
	}{
		{Limit{}, 0, false, false, "unknown"},
		{Known(-1), 0, false, false, "unknown"},
		{Known(math.MinInt64), 0, false, false, "unknown"},
		{Off(), 0, false, true, "off"},
		{Known(0), 0, true, false, "0"},
		{Known(math.MaxInt64), math.MaxInt64, true, false, "9223372036854775807"},
	} {
		n, known := c.limit.Value()
		if n != c.n || known != c.known || c.limit.IsOff() != c.off || c.limit.String() != c.text {
			t.Errorf("limit %v: Value = %d, %v, IsOff = %v, want %d, %v, %v, %s", c.limit, n, known, c.limit.IsOff(), c.n, c.known, c.off, c.text)
		}
	}
}
