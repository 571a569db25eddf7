package jobsize

import "fmt"

// A Source says where a size came from.
type Source string

// The sources of a size, the highest first.
const (
	FromProject Source = "project"
	FromEnv     Source = "env"
	FromDefault Source = "default"
)

// The size of a job that nobody gave one.
const (
	DefaultMem MiB   = 4096
	DefaultCPU Centi = 200
)

// A Size is how much of a host one job gets.
type Size struct {
	Mem    MiB
	CPU    Centi
	Source Source
}

// A Request is a size as somebody wrote it: a project's row, a job, the
// environment. An empty text leaves its dimension out.
type Request struct {
	Memory string `json:"memory,omitempty"` // such as 512m, see ParseMemory
	CPUs   string `json:"cpus,omitempty"`   // such as 0.5, see ParseCPUs
}

// Resolve returns the size that a project's request gives, with the
// environment's and then the default for each dimension it leaves out. Its
// Source is the highest one that gave a value. A value that is no size is an
// error that names its source, also where a higher source hides it.
func Resolve(project, env Request) (Size, error) {
	size := Size{DefaultMem, DefaultCPU, FromDefault}
	for _, from := range []struct {
		source  Source
		request Request
	}{{FromEnv, env}, {FromProject, project}} { // the higher one overwrites
		if from.request == (Request{}) {
			continue
		}
		if err := size.take(from.request); err != nil {
			return Size{}, fmt.Errorf("job size from %s: %w", from.source, err)
		}
		size.Source = from.source
	}
	return size, nil
}

// take overwrites the dimensions that a request gives.
func (s *Size) take(r Request) (err error) {
	if r.Memory != "" {
		if s.Mem, err = ParseMemory(r.Memory); err != nil {
			return err
		}
	}
	if r.CPUs != "" {
		s.CPU, err = ParseCPUs(r.CPUs)
	}
	return err
}
