package record

import (
	"errors"
	"iter"
	"time"
)

// A Summary adds up records.
type Summary struct {
	Records     int // all of which the core was read
	Unreadable  int // of these, from a newer version: counted, not added up
	Unparseable int // files that are no records
	Outcomes    map[Outcome]int
	RunTime     time.Duration // from start to end, where both are known
	MiBSeconds  float64       // memory sizes times run times
	CPUSeconds  float64       // CPU sizes times run times
	Tokens      float64
}

// Summarize adds up the records of a [Store.All]. The first error that is no
// [UnparseableError] ends it.
func Summarize(all iter.Seq2[Record, error]) (Summary, error) {
	s := Summary{Outcomes: map[Outcome]int{}}
	for r, err := range all {
		var bad *UnparseableError
		switch {
		case errors.As(err, &bad):
			s.Unparseable++
		case err != nil:
			return Summary{}, err
		default:
			s.add(&r)
		}
	}
	return s, nil
}

func (s *Summary) add(r *Record) {
	s.Records++
	if !r.Readable() {
		s.Unreadable++
		return
	}
	s.Outcomes[r.Outcome]++
	start, okStart := r.StartedAt.Time()
	end, okEnd := r.EndedAt.Time()
	if okStart && okEnd && end.After(start) {
		d := end.Sub(start)
		s.RunTime += d
		if r.Size != nil {
			s.MiBSeconds += float64(r.Size.MemMiB) * d.Seconds()
			s.CPUSeconds += float64(r.Size.CPUCenti) / 100 * d.Seconds()
		}
	}
	if r.Tokens != nil {
		s.Tokens += r.Tokens.Total
	}
}
