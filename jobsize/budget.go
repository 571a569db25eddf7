package jobsize

import "fmt"

// The reserve that FactsBudget leaves to the host at the least.
const (
	reserveMem MiB   = 1024
	reserveCPU Centi = 25
)

// A Budget is how much of a host all its jobs together may use. Mem is in MiB,
// CPU in hundredths of a CPU. An off or unknown dimension refuses no job.
type Budget struct {
	Mem Limit
	CPU Limit
}

// FactsBudget returns the budget that a host's facts give, less a reserve for
// the host itself: the larger of 1 GiB and a tenth of its memory, the larger of
// a quarter CPU and a twentieth of its CPUs, rounded up. It is never below one
// smallest job. Memory is in bytes, CPUs are whole; a fact that is unknown, or
// past the largest believable host, gives an unknown dimension.
func FactsBudget(memory, cpus Limit) Budget {
	var b Budget
	if bytes, ok := memory.Value(); ok && bytes > 0 && bytes <= MaxHostMem.Bytes() {
		mem := MiB(bytes >> 20)
		reserve := max(reserveMem, (mem+9)/10)
		b.Mem = Known(int64(max(mem-reserve, MinMem)))
	}
	if n, ok := cpus.Value(); ok && n > 0 && n <= MaxHostCPUs {
		cpu := Centi(100 * n)
		reserve := max(reserveCPU, (cpu+19)/20)
		b.CPU = Known(int64(max(cpu-reserve, MinCPU)))
	}
	return b
}

// A Dimension is what a size has two of.
type Dimension string

// The dimensions of a size.
const (
	Memory Dimension = "memory"
	CPUs   Dimension = "cpus"
)

// The reasons of a Misfit, tokens of a record.
const (
	ExceedsHost  = "job-size-exceeds-host"
	ExceedsShare = "job-size-exceeds-share"
)

// A Misfit says why a job can never run within a budget. It is an error.
type Misfit struct {
	Reason    string // ExceedsHost or ExceedsShare
	Dimension Dimension
	Size      Size
	Budget    Budget
	// SharePercent is the share of the host the job's project may use, 0 when
	// that had no part in it.
	SharePercent int64
}

// Error names the size, the budget and the way out.
func (m Misfit) Error() string {
	var size, budget fmt.Stringer
	if n, _ := m.Budget.Mem.Value(); m.Dimension == Memory {
		size, budget = m.Size.Mem, MiB(n)
	}
	if n, _ := m.Budget.CPU.Value(); m.Dimension == CPUs {
		size, budget = m.Size.CPU, Centi(n)
	}
	share := ""
	if m.Reason == ExceedsShare {
		share = fmt.Sprintf("the project's share, %d %% of ", m.SharePercent)
	}
	return fmt.Sprintf("%s of %v is more than %sthis host's budget of %v: ask for less or use a larger host", m.Dimension, size, share, budget)
}

// Fits reports whether a job of this size can ever run within the budget, of
// which its project may use a share in percent (1..99; any other number is no
// share). When it can't, the Misfit says why. Memory is judged before CPU, and
// the host before the share.
func (b Budget) Fits(s Size, sharePercent int64) (Misfit, bool) {
	if sharePercent < 1 || sharePercent > 99 {
		sharePercent = 100
	}
	for _, judged := range []struct {
		reason  string
		percent int64
	}{{ExceedsHost, 100}, {ExceedsShare, sharePercent}} {
		for _, d := range []struct {
			dimension Dimension
			limit     Limit
			need      int64
		}{
			{Memory, b.Mem, int64(s.Mem)},
			{CPUs, b.CPU, int64(s.CPU)},
		} {
			n, ok := d.limit.Value()
			if ok && percentOf(n, judged.percent) < d.need {
				m := Misfit{Reason: judged.reason, Dimension: d.dimension, Size: s, Budget: b}
				if judged.reason == ExceedsShare {
					m.SharePercent = sharePercent
				}
				return m, false
			}
		}
	}
	return Misfit{}, true
}

// percentOf returns floor(n * percent / 100) without overflow, for a percent of
// at most 100.
func percentOf(n, percent int64) int64 { return n/100*percent + n%100*percent/100 }
