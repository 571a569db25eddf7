package jobsize

import (
	"math"
	"testing"
)

func TestFactsBudget(t *testing.T) {
	const gib = 1 << 30
	unknown := Limit{}
	for _, c := range []struct {
		memory, cpus Limit
		mem, cpu     Limit
	}{
		{Known(8 * gib), Known(2), Known(8192 - 1024), Known(175)},     // the fixed reserve
		{Known(64 * gib), Known(16), Known(65536 - 6554), Known(1520)}, // the share, rounded up
		{Known(10 * gib), Known(5), Known(10240 - 1024), Known(475)},   // both are the same
		{Known(10*gib + 1<<20), Known(7), Known(10241 - 1025), Known(665)},
		{Known(gib), Known(1), Known(64), Known(75)}, // never below one smallest job
		{Known(1), Known(1), Known(64), Known(75)},
		{Known(MaxHostMem.Bytes()), Known(4096), Known(67108864 - 6710887), Known(409600 - 20480)},
		{Known(MaxHostMem.Bytes() + 1), Known(4097), unknown, unknown}, // past the largest host
		{Known(math.MaxInt64), Known(math.MaxInt64), unknown, unknown},
		{Known(0), Known(0), unknown, unknown},
		{unknown, Known(2), unknown, Known(175)},
		{Known(8 * gib), Off(), Known(7168), unknown},
	} {
		if got, want := FactsBudget(c.memory, c.cpus), (Budget{c.mem, c.cpu}); got != want {
			t.Errorf("FactsBudget(%v, %v) = %v, want %v", c.memory, c.cpus, got, want)
		}
	}
}

func TestFits(t *testing.T) {
	known, off, unknown := Known, Off(), Limit{}
	size := Size{1024, 200, FromEnv}
	for _, c := range []struct {
		budget    Budget
		share     int64
		reason    string // "" when it fits
		dimension Dimension
	}{
		{Budget{known(1024), known(200)}, 0, "", ""},
		{Budget{known(1023), known(200)}, 0, ExceedsHost, Memory},
		{Budget{known(1024), known(199)}, 0, ExceedsHost, CPUs},
		{Budget{known(1023), known(199)}, 0, ExceedsHost, Memory}, // memory is judged first
		{Budget{known(0), known(0)}, 0, ExceedsHost, Memory},
		{Budget{off, off}, 1, "", ""},
		{Budget{unknown, unknown}, 1, "", ""},
		{Budget{off, known(199)}, 0, ExceedsHost, CPUs},
		{Budget{unknown, known(199)}, 0, ExceedsHost, CPUs},
		{Budget{known(2048), known(400)}, 50, "", ""},
		{Budget{known(2047), known(400)}, 50, ExceedsShare, Memory}, // 1023.5 is cut to 1023
		{Budget{known(2048), known(399)}, 50, ExceedsShare, CPUs},
		{Budget{known(2047), known(199)}, 50, ExceedsHost, CPUs}, // the host before the share
		{Budget{known(1034), known(203)}, 99, ExceedsShare, Memory},
		{Budget{known(1035), known(203)}, 99, "", ""}, // 1024.65 and 200.97
		{Budget{known(102400), known(20000)}, 1, "", ""},
		{Budget{known(102399), known(20000)}, 1, ExceedsShare, Memory},
		{Budget{known(1024), known(200)}, 100, "", ""}, // no share
		{Budget{known(1024), known(200)}, 101, "", ""},
		{Budget{known(1024), known(200)}, -50, "", ""},
		{Budget{known(1024), known(200)}, math.MaxInt64, "", ""},
		{Budget{known(math.MaxInt64), known(math.MaxInt64)}, 99, "", ""}, // no overflow
	} {
		got, ok := c.budget.Fits(size, c.share)
		want := Misfit{}
		if c.reason != "" {
			want = Misfit{Reason: c.reason, Dimension: c.dimension, Size: size, Budget: c.budget}
			if c.reason == ExceedsShare {
				want.SharePercent = c.share
			}
		}
		if got != want || ok != (c.reason == "") {
			t.Errorf("%v.Fits(%v, %d) = %+v, %v, want %+v", c.budget, size, c.share, got, ok, want)
		}
	}
}

func TestMisfitSaysBoth(t *testing.T) {
	budget := Budget{Known(6000), Known(150)}
	for _, c := range []struct {
		size  Size
		share int64
		want  string
	}{
		{Size{8192, 100, FromEnv}, 0, "memory of 8g is more than this host's budget of 6000m: ask for less or use a larger host"},
		{Size{64, 200, FromEnv}, 0, "cpus of 2 is more than this host's budget of 1.5: ask for less or use a larger host"},
		{Size{4096, 25, FromEnv}, 50, "memory of 4g is more than the project's share, 50 % of this host's budget of 6000m: ask for less or use a larger host"},
	} {
		if m, ok := budget.Fits(c.size, c.share); ok || m.Error() != c.want {
			t.Errorf("Fits(%v, %d) = %v, %v, want %s", c.size, c.share, m, ok, c.want)
		}
	}
}

func TestPeakReachedLimit(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		peak, limit int64
		want        bool
	}{
		{9, 10, true}, {8, 10, false}, {10, 11, true}, {9, 11, false}, // 9.9 is rounded up
		{1, 1, true}, {0, 1, false}, {2, 2, true}, {1, 2, false},
		{0, 0, false}, {1, 0, false}, {1, -1, false}, {-1, 1, false}, {math.MinInt64, most, false}, {most, math.MinInt64, false},
		{8301034833169298227, most, true}, {8301034833169298226, most, false}, {most, most, true}, {most, 1, true}, {0, most, false},
		{33554432, 33554432, true}, {33558528, 33554432, true}, // a page above
	} {
		if got := PeakReachedLimit(c.peak, c.limit); got != c.want {
			t.Errorf("PeakReachedLimit(%d, %d) = %v, want %v", c.peak, c.limit, got, c.want)
		}
	}
}
