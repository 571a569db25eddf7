package jobsize

import "math"

// The range of a container runtime's CPU shares.
const (
	MinShares = 2
	MaxShares = 262144
)

// maxWeight is the highest cpu.weight of cgroup v2.
const maxWeight = 10000

// A Mapping is how a container runtime turns CPU shares into a cgroup v2 weight.
type Mapping string

// The mappings that runtimes use.
const (
	NoMapping Mapping = ""       // not known
	Linear    Mapping = "linear" // runc before 1.3.2, crun before 1.23
	Curved    Mapping = "curved" // later ones
)

// Shares returns the CPU shares of the size: 1024 for each CPU, rounded halves
// up, inside MinShares..MaxShares.
func (s Size) Shares() int64 { return max(roundDiv(s.cpu()*1024, 100), MinShares) }

// cpu returns the size's CPUs where shares don't overflow: those of MaxCPU are
// MaxShares.
func (s Size) cpu() int64 { return int64(min(max(s.CPU, 0), MaxCPU)) }

// SharesFor returns the shares that make two sizes weigh against each other as
// their CPUs do under a known mapping: the highest whose weight is 39 for each
// CPU under the linear one, 100 under the curved one. A weight tops out at
// 10000. For NoMapping it is Shares.
func (s Size) SharesFor(m Mapping) int64 {
	var perCPU int64
	switch m {
	case Linear:
		perCPU = 39
	case Curved:
		perCPU = 100
	default:
		return s.Shares()
	}
	want := min(max(roundDiv(perCPU*s.cpu(), 100), 1), maxWeight)
	low, high := int64(MinShares), int64(MaxShares)
	for low < high { // weights rise with shares: find the last that is not above want
		if middle := (low + high + 1) / 2; weight(m, middle) <= want {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// Weights returns the cpu.weight values that a number of shares may become, the
// linear mapping's first, one where both give the same. Below MinShares there is
// none: the runtime leaves the weight as it is.
func Weights(shares int64) []int64 {
	if shares < MinShares {
		return nil
	}
	linear, curved := weight(Linear, shares), weight(Curved, shares)
	if linear == curved {
		return []int64{linear}
	}
	return []int64{linear, curved}
}

// MappingOf names the mapping that turned shares into a weight read back. It is
// NoMapping when neither did, and where both give the same weight.
func MappingOf(shares, weightRead int64) Mapping {
	weights := Weights(shares)
	if len(weights) != 2 {
		return NoMapping
	}
	switch weightRead {
	case weights[0]:
		return Linear
	case weights[1]:
		return Curved
	}
	return NoMapping
}

// weight applies a mapping to shares of at least MinShares.
func weight(m Mapping, shares int64) int64 {
	if shares >= MaxShares {
		return maxWeight
	}
	if m == Linear {
		return 1 + (shares-MinShares)*(maxWeight-1)/(MaxShares-MinShares)
	}
	l := math.Log2(float64(shares))
	exponent := (l*l+125*l)/612 - 7.0/34
	// The curve is whole at 2, 1024 and 262144 and otherwise at least 3e-6 above
	// a whole number: the small step down makes the answer the same on every
	// architecture, whatever its last bits.
	return int64(math.Ceil(math.Pow(10, exponent) - 1e-9))
}

// roundDiv divides two numbers that are not negative, halves up.
func roundDiv(a, b int64) int64 { return (a + b/2) / b }
