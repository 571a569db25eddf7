package jobsize

// MiB is an amount of memory in mebibytes.
type MiB int64

// Bytes returns the amount in bytes.
func (m MiB) Bytes() int64 { return int64(m) << 20 }

// Centi is a number of CPUs in hundredths: 150 is one and a half CPUs.
type Centi int64

// A Source says where a size came from.
type Source string

// The sources of a size, the highest first.
const (
	FromProject Source = "project"
	FromEnv     Source = "env"
	FromDefault Source = "default"
)

// A Size is how much of a host one job gets.
type Size struct {
	Mem    MiB
	CPU    Centi
	Source Source
}
