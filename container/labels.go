package container

import "strconv"

// The labels of a container.
const (
	labelInstance = "dispatch.instance"
	labelHost     = "dispatch.host"
	labelJob      = "dispatch.job"
	labelAttempt  = "dispatch.attempt"
	// labelRun tells the container of one Run from any other, also from one
	// that has its name.
	labelRun = "dispatch.run"
)

// labelCapabilities is an image's label: a comma list of what it can do.
const labelCapabilities = "dispatch.capabilities"

// pairs returns the labels in a fixed order, empty ones too.
func (l Labels) pairs() [][2]string {
	return [][2]string{
		{labelInstance, l.Instance},
		{labelHost, l.Host},
		{labelJob, l.Job},
		{labelAttempt, l.Attempt},
	}
}

// labelsOf reads the labels of a container.
func labelsOf(all map[string]string) Labels {
	return Labels{all[labelInstance], all[labelHost], all[labelJob], all[labelAttempt]}
}

func (s Spec) labels() Labels {
	return Labels{s.Instance, s.Host, s.Job, strconv.Itoa(s.Attempt)}
}

// match reports whether labels match every field of the filter that is not
// empty.
func (filter Labels) match(l Labels) bool {
	have := l.pairs()
	for i, want := range filter.pairs() {
		if want[1] != "" && want != have[i] {
			return false
		}
	}
	return true
}
