package jobsize

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	for cpu, want := range map[Centi]int64{
		25: 256, 26: 266, 50: 512, 99: 1014, 100: 1024, 150: 1536, 200: 2048, 201: 2058, 25600: 262144,
		0: 2, -1: 2, math.MinInt64: 2, 25601: 262144, math.MaxInt64: 262144, // no size, and no overflow
	} {
		if got := (Size{CPU: cpu}).Shares(); got != want {
			t.Errorf("Size{CPU: %d}.Shares() = %d, want %d", int64(cpu), got, want)
		}
	}
}

func TestWeights(t *testing.T) {
	for shares, want := range map[int64][]int64{
		math.MinInt64: nil, -5: nil, 0: nil, 1: nil, 2: {1}, 1024: {39, 100}, 2000: {77, 170}, 2048: {79, 174}, 10240: {391, 639},
		262143: {9999, 10000}, 262144: {10000}, 9999999: {10000}, math.MaxInt64: {10000},
	} {
		if got := Weights(shares); !cmp.Equal(got, want) {
			t.Errorf("Weights(%d) = %v, want %v", shares, got, want)
		}
	}
}

// Every value of the curve but the whole ones is far enough above a whole number
// that the last bits of a float don't decide its weight.
func TestCurveIsTheSameEverywhere(t *testing.T) {
	whole := map[int64]bool{2: true, 1024: true, 262144: true}
	for shares := int64(MinShares); shares <= MaxShares; shares++ {
		l := math.Log2(float64(shares))
		value := math.Pow(10, (l*l+125*l)/612-7.0/34)
		above := value - math.Floor(value)
		if whole[shares] {
			if above = math.Min(above, 1-above); above > 1e-10 {
				t.Errorf("shares %d: the curve gives %v, want a whole number", shares, value)
			}
		} else if above < 3e-6 {
			t.Errorf("shares %d: the curve gives %v, too near a whole number", shares, value)
		}
	}
}

func TestMappingOf(t *testing.T) {
	for _, c := range []struct {
		shares, weight int64
		want           Mapping
	}{
		{1024, 39, Linear}, {1024, 100, Curved}, {2048, 79, Linear}, {2048, 174, Curved},
		{1024, 40, NoMapping}, {1024, 0, NoMapping}, {1024, -1, NoMapping}, {2048, 100, NoMapping},
		{2, 1, NoMapping}, {262144, 10000, NoMapping}, {262143, 9999, Linear}, {1, 1, NoMapping}, {0, 100, NoMapping},
	} {
		if got := MappingOf(c.shares, c.weight); got != c.want {
			t.Errorf("MappingOf(%d, %d) = %q, want %q", c.shares, c.weight, got, c.want)
		}
	}
	// The two agree only at the ends, so every size but the largest can name it.
	for shares := int64(MinShares); shares <= MaxShares; shares++ {
		weights := Weights(shares)
		if ends := shares == MinShares || shares == MaxShares; (len(weights) == 1) != ends {
			t.Fatalf("Weights(%d) = %v, want one weight only at the ends", shares, weights)
		}
	}
}

func TestSharesFor(t *testing.T) {
	for _, c := range []struct {
		mapping              Mapping
		cpu                  Centi
		wantShares, wantWght int64
	}{
		{Curved, 100, 1024, 100}, {Curved, 200, 2451, 200}, {Curved, 400, 5784, 400}, {Curved, 800, 13460, 800},
		{Curved, 10000, 262144, 10000}, {Curved, 25600, 262144, 10000},
		{Linear, 100, 1024, 39}, {Linear, 25600, 261750, 9984},
	} {
		got := Size{CPU: c.cpu}.SharesFor(c.mapping)
		if got != c.wantShares || weight(c.mapping, got) != c.wantWght {
			t.Errorf("Size{CPU: %v}.SharesFor(%s) = %d of weight %d, want %d of weight %d",
				c.cpu, c.mapping, got, weight(c.mapping, got), c.wantShares, c.wantWght)
		}
	}
	for _, cpu := range []Centi{25, 100, 25600} {
		s := Size{CPU: cpu}
		if got := s.SharesFor(NoMapping); got != s.Shares() {
			t.Errorf("SharesFor(NoMapping) of %v CPUs = %d, want %d", cpu, got, s.Shares())
		}
	}
}

// For every size the shares are the highest whose weight is the one that the
// CPUs ask for.
func TestSharesForEverySize(t *testing.T) {
	for mapping, perCPU := range map[Mapping]int64{Linear: 39, Curved: 100} {
		for cpu := MinCPU; cpu <= MaxCPU; cpu++ {
			want := min((2*perCPU*int64(cpu)+100)/200, 10000) // halves up
			got := Size{CPU: cpu}.SharesFor(mapping)
			if weight(mapping, got) != want || got < MaxShares && weight(mapping, got+1) <= want {
				t.Fatalf("Size{CPU: %v}.SharesFor(%s) = %d, want the highest shares of weight %d", cpu, mapping, got, want)
			}
		}
	}
}
