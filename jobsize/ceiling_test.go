package jobsize

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestCeiling(t *testing.T) {
	unknown := Limit{}
	for _, c := range []struct{ hostCPUs, budget, want Limit }{
		{Known(4), Known(330), Known(330)},
		{Known(4), Known(400), Known(400)},
		{Known(4), Known(500), Known(400)}, // never above the count
		{Known(4), Off(), Known(400)},
		{Known(4), unknown, Known(400)},
		{Known(4), Known(0), Known(400)},
		{unknown, Known(330), Known(330)},
		{Off(), Known(330), Known(330)},
		{unknown, unknown, Off()},
		{unknown, Off(), Off()},
		{unknown, Known(0), Off()},
		{Known(0), unknown, Off()},
		{Known(4096), unknown, Known(409600)},
		{Known(4097), unknown, Off()}, // no host has so many
		{Known(4097), Known(330), Known(330)},
		{Known(math.MaxInt64), Known(math.MaxInt64), Off()},
	} {
		if got := Ceiling(c.hostCPUs, c.budget); got != c.want {
			t.Errorf("Ceiling(%v, %v) = %v, want %v", c.hostCPUs, c.budget, got, c.want)
		}
	}
}

func TestCPUMax(t *testing.T) {
	for _, c := range []struct {
		ceiling Limit
		want    string
	}{
		{Known(330), "330000 100000"}, {Known(1), "1000 100000"}, {Known(25), "25000 100000"}, {Known(409600), "409600000 100000"},
		{Off(), "max 100000"}, {Limit{}, "max 100000"}, {Known(0), "max 100000"}, {Known(math.MaxInt64), "max 100000"},
	} {
		if got := CPUMax(c.ceiling); got != c.want {
			t.Errorf("CPUMax(%v) = %q, want %q", c.ceiling, got, c.want)
		}
	}
}

func TestParseCPUMax(t *testing.T) {
	for text, want := range map[string]Limit{
		"max 100000": Off(), "max 100000\n": Off(), "max 1": Off(), "330000 100000\n": Known(330), "150000 100000": Known(150),
		"0 100000": Known(0), "50000 50000": Known(100), "1 3": Known(33), "2 3": Known(67),
		"4 800": Known(1), "3 800": Known(0), "1 200": Known(1), "1 201": Known(0), // halves up
		"18446744073709551615 18446744073709551615": Known(100), "9223372036854775807 100": Known(math.MaxInt64),
	} {
		if got, err := ParseCPUMax(text); got != want || err != nil {
			t.Errorf("ParseCPUMax(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "\n", "max", "max ", "max\n", " max 100000", "max  100000", "max 100000 ", "max 100000\n\n", "max 100000\r\n", "max 0", "100000 0",
		"100000", "100000 ", " 100000", "-1 100000", "+1 100000", "1 -100000", "1.5 100000", "1e5 100000", "0x10 100000", "1_0 100000",
		"MAX 100000", "maximum 100000", "100000 max", "max max", "1 2 3", "\uff11 100000", "1\t100000",
		"18446744073709551616 100000", "1 18446744073709551616", "18446744073709551615 1", "9223372036854775808 100",
		strings.Repeat("9", 1000) + " 100000",
	} {
		got, err := ParseCPUMax(text)
		if got != (Limit{}) || err == nil || !strings.Contains(err.Error(), quote(text)) {
			t.Errorf("ParseCPUMax(%q) = %v, %v, want an error that quotes it", text, got, err)
		}
	}
}

// A ceiling that is written reads back.
func TestCPUMaxRoundTrips(t *testing.T) {
	for centi := int64(1); centi <= 100*MaxHostCPUs; centi += 7 {
		if got, err := ParseCPUMax(CPUMax(Known(centi)) + "\n"); got != Known(centi) || err != nil {
			t.Fatalf("ParseCPUMax(CPUMax(%d)) = %v, %v", centi, got, err)
		}
	}
}

// The quotient is held against arithmetic without bounds.
func FuzzParseCPUMax(f *testing.F) {
	for _, text := range []string{"max 100000\n", "330000 100000", "1 3", "18446744073709551615 7", "1 200", "", "max 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseCPUMax(text)
		if err != nil {
			if got != (Limit{}) {
				t.Fatalf("ParseCPUMax(%q) = %v and an error", text, got)
			}
			return
		}
		quotaText, periodText, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		if quotaText == "max" {
			if !got.IsOff() {
				t.Fatalf("ParseCPUMax(%q) = %v, want off", text, got)
			}
			return
		}
		quota, ok1 := new(big.Int).SetString(quotaText, 10)
		period, ok2 := new(big.Int).SetString(periodText, 10)
		if !ok1 || !ok2 || period.Sign() <= 0 {
			t.Fatalf("ParseCPUMax(%q) = %v, want an error", text, got)
		}
		// floor((200*quota + period) / (2*period)) rounds halves up.
		n := new(big.Int).Mul(quota, big.NewInt(200))
		n.Div(n.Add(n, period), new(big.Int).Lsh(period, 1))
		if centi, ok := got.Value(); !ok || big.NewInt(centi).Cmp(n) != 0 {
			t.Fatalf("ParseCPUMax(%q) = %v, want %v", text, got, n)
		}
	})
}

func TestRefusedCPUs(t *testing.T) {
	const refused = "docker: Error response from daemon: Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available.\nSee 'docker run --help'."
	for text, want := range map[string]int64{
		refused: 2,
		"range of CPUs is from 0.01 to 64.00, as there are only 64 CPUs available":                  64,
		"Range of CPUs is from 0.01 to 4096.00, as there are only 4096 CPUs available":              4096,
		"Range of CPUs is from 0.01 to 4097.00, as there are only 4097 CPUs available":              0,
		"Range of CPUs is from 0.01 to 0.00, as there are only 0 CPUs available":                    0,
		"Range of CPUs is from 0.01 to 2.00, as there are only 99999999999999999999 CPUs available": 0,
		"Range of CPUs is from 0.01 to 2.00, as there are only -2 CPUs available":                   0,
		"Orange of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available":                   0,
		"RANGE OF CPUS IS FROM 0.01 TO 2.00, AS THERE ARE ONLY 2 CPUS AVAILABLE":                    0,
		"as there are only 2 CPUs available":                                                        0,
		"cpu.cfs_quota_us: invalid argument":                                                        0,
		"":                                                                                          0,
		strings.Repeat(" ", 4096-len(refused)) + refused:                                            2,
		strings.Repeat(" ", 4096) + refused:                                                         0,
		strings.Repeat(" ", 4096-50) + refused:                                                      0, // cut off by the bound
	} {
		got, ok := RefusedCPUs([]byte(text))
		if got != want || ok != (want != 0) {
			t.Errorf("RefusedCPUs(%.120q) = %d, %v, want %d", text, got, ok, want)
		}
	}
}
