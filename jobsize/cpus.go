package jobsize

import (
	"fmt"
	"strconv"
	"strings"
)

// The bounds of a job's CPUs. 256 CPUs is where CPU shares top out.
const (
	MinCPU Centi = 25
	MaxCPU Centi = 25600
)

// Centi is a number of CPUs in hundredths: 150 is one and a half CPUs.
type Centi int64

// String returns the number of CPUs as a decimal without trailing zeros: 2, 0.5,
// 1.25. [ParseCPUs] reads it back to the same number.
func (c Centi) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	whole := sign + strconv.FormatInt(int64(c/100), 10)
	switch rest := int64(c % 100); {
	case rest == 0:
		return whole
	case rest%10 == 0:
		return whole + "." + strconv.FormatInt(rest/10, 10)
	default:
		return whole + "." + fmt.Sprintf("%02d", rest)
	}
}

// ParseCPUs reads a number of CPUs from 0.25 to 256, written as a decimal with
// at most two fraction digits and no sign, space, exponent, leading zero before
// another digit, or leading or trailing dot. The error names the text, cut at 64
// characters, and what is allowed.
func ParseCPUs(s string) (Centi, error) {
	whole, fraction, dot := strings.Cut(s, ".")
	n, ok := parseDecimal(whole, int64(MaxCPU))
	hundredths, fractionOK := parseHundredths(fraction, dot)
	// n is at most MaxCPU+1, so that the product can't overflow.
	if cpu := Centi(100*n + hundredths); ok && fractionOK && cpu >= MinCPU && cpu <= MaxCPU {
		return cpu, nil
	}
	return 0, fmt.Errorf("number of CPUs is %s, want %v to %v CPUs as a decimal with at most two fraction digits, such as 2 or 0.5", quote(s), MinCPU, MaxCPU)
}

// parseHundredths reads what stands behind the dot of a decimal, in hundredths.
func parseHundredths(s string, dot bool) (int64, bool) {
	if !dot {
		return 0, true
	}
	if len(s) < 1 || len(s) > 2 {
		return 0, false
	}
	n, ok := parseDecimal("1"+s, 1000)
	if len(s) == 1 {
		return 10 * (n - 10), ok
	}
	return n - 100, ok
}
