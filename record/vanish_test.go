package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAllPassesOverWhatVanishes(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for _, id := range []string{"a", "b", "c"} {
		write(t, s, Build(sampleRun(id, 1)))
	}
	var seen []string
	for r, err := range s.All() {
		if err != nil {
			t.Errorf("All: %v", err)
		}
		seen = append(seen, r.JobID)
		os.Remove(filepath.Join(s.Dir, "b.json"))
	}
	if strings.Join(seen, "") != "ac" {
		t.Errorf("All = %v, want a and c", seen)
	}
}

func TestReapEnds(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	s := &Store{Dir: t.TempDir(), Retention: time.Hour}
	write(t, s, Build(sampleRun("a", 1)))
	if err := s.Reap(ctx); !errors.Is(err, cause) {
		t.Errorf("Reap = %v, want the cause of its end", err)
	}
	if err := (&Store{Dir: filepath.Join(s.Dir, "missing")}).Reap(t.Context()); err != nil {
		t.Errorf("Reap of a folder that is not there = %v, want nil", err)
	}
}
