package jobsize

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// The largest host that is believed. A fact past these is a fault and reads as
// unknown.
const (
	MaxHostCPUs  = 4096
	MaxHostMem   = MiB(64 << 20)
	MaxHostSlots = 16384 // as many of the smallest jobs as those CPUs hold
)

// cpuPeriod is the period of a cpu.max line in microseconds; a hundredth of a
// CPU is then quotaPerCenti microseconds of it, exactly.
const (
	cpuPeriod     = 100_000
	quotaPerCenti = cpuPeriod / 100
)

// Ceiling returns the number of CPUs, in hundredths, that no job may exceed: the
// host's CPU budget (hundredths) when one is in force, else the runtime's CPU
// count (whole CPUs), and never more than that count where it is known. With
// neither known there is no ceiling: Off. A number of 0, or past the largest
// believable host, is not known.
func Ceiling(hostCPUs, budget Limit) Limit {
	count, countKnown := hostCPUs.Value()
	countKnown = countKnown && count >= 1 && count <= MaxHostCPUs
	centi, budgetKnown := budget.Value()
	budgetKnown = budgetKnown && centi >= 1 && centi <= 100*MaxHostCPUs
	switch {
	case countKnown && budgetKnown:
		return Known(min(centi, 100*count))
	case countKnown:
		return Known(100 * count)
	case budgetKnown:
		return Known(centi)
	}
	return Off()
}

// CPUMax returns the text of a cpu.max file for a ceiling in hundredths of a
// CPU: "150000 100000" for 1.5 CPUs, "max 100000" for no ceiling.
func CPUMax(ceiling Limit) string {
	centi, ok := ceiling.Value()
	if !ok || centi == 0 || centi > 100*MaxHostCPUs {
		return fmt.Sprintf("max %d", cpuPeriod)
	}
	return fmt.Sprintf("%d %d", centi*quotaPerCenti, cpuPeriod)
}

// ParseCPUMax reads a cpu.max file, with or without its newline, as hundredths
// of a CPU, halves up; "max" before the period is Off.
func ParseCPUMax(s string) (Limit, error) {
	quotaText, periodText, _ := strings.Cut(strings.TrimSuffix(s, "\n"), " ")
	period, periodOK := parseUint(periodText)
	if !periodOK || period == 0 {
		return Limit{}, fmt.Errorf("cpu.max is %s, want a quota or max, and a period in microseconds", quote(s))
	}
	if quotaText == "max" {
		return Off(), nil
	}
	quota, ok := parseUint(quotaText)
	if !ok {
		return Limit{}, fmt.Errorf("cpu.max is %s, want a quota or max, and a period in microseconds", quote(s))
	}
	high, low := bits.Mul64(quota, 100)
	low, carry := bits.Add64(low, period/2, 0)
	if high += carry; high >= period {
		return Limit{}, fmt.Errorf("cpu.max is %s, which is more CPUs than can be counted", quote(s))
	}
	centi, _ := bits.Div64(high, low, period)
	if int64(centi) < 0 {
		return Limit{}, fmt.Errorf("cpu.max is %s, which is more CPUs than can be counted", quote(s))
	}
	return Known(int64(centi)), nil
}

// parseUint reads digits alone: no sign, no underscore.
func parseUint(s string) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
