package cgroup

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/edgehero/dispatch/jobsize"
)

func pendingShares(s jobsize.Size) int64 {
	return min(max((int64(s.CPU)*1024+50)/100, 2), 262144)
}
func pendingWeights(s int64) []int64 {
	if s < 2 {
		return nil
	}
	if s >= 262144 {
		return []int64{10000}
	}
	a := 1 + (s-2)*9999/262142
	l := math.Log2(float64(s))
	b := int64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34) - 1e-9))
	if a == b {
		return []int64{a}
	}
	return []int64{a, b}
}
func pendingCPUMax(l jobsize.Limit) string {
	if n, ok := l.Value(); ok {
		return strconv.FormatInt(n*1000, 10) + " 100000"
	}
	return "max 100000"
}
func pendingParseCPUMax(s string) (jobsize.Limit, error) {
	q, p, ok := strings.Cut(strings.TrimSuffix(s, "\n"), " ")
	pn, err := strconv.ParseInt(p, 10, 64)
	if !ok || err != nil || pn == 0 {
		return jobsize.Limit{}, errors.New("bad")
	}
	if q == "max" {
		return jobsize.Off(), nil
	}
	n, err := strconv.ParseInt(q, 10, 64)
	if err != nil {
		return jobsize.Limit{}, err
	}
	return jobsize.Known((n*100 + pn/2) / pn), nil
}
