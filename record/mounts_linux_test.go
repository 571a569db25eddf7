package record

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadOnlyFolder(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	old := Build(sampleRun("j", 1))
	write(t, s, old)
	mount(t, s.Dir, s.Dir, "", syscall.MS_BIND, "")
	if err := mountFS("", s.Dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(Build(sampleRun("j", 2))); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Write into a read-only folder = %v, want EROFS", err)
	}
	checkRead(t, s, old)
}

// onLog calls a function for each line of a log.
type onLog struct {
	slog.Handler
	do func(slog.Record)
}

func (h onLog) Enabled(context.Context, slog.Level) bool { return true }

func (h onLog) Handle(_ context.Context, r slog.Record) error {
	h.do(r)
	return nil
}

// Another reaper takes a file, another file can't be removed, and the sweep goes
// on to its end.
func TestReapGoesOn(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Retention: time.Hour}
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"a.json", "b.json", "c.log", "d.json"} {
		p := filepath.Join(s.Dir, name)
		if err := errors.Join(os.WriteFile(p, nil, 0o600), os.Chtimes(p, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	busy := filepath.Join(s.Dir, "c.log")
	mount(t, busy, busy, "", syscall.MS_BIND, "")
	var reaped []string
	s.Logger = slog.New(onLog{slog.DiscardHandler, func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			reaped = append(reaped, r.Message+" "+a.Value.String())
			return true
		})
		os.Remove(filepath.Join(s.Dir, "b.json"))
	}})
	err := s.Reap(t.Context())
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), `"c.log"`) || strings.Contains(err.Error(), s.Dir) {
		t.Errorf("Reap = %v, want that c.log is busy, and no path", err)
	}
	if got := strings.Join(reaped, ", "); got != "record_reaped a.json, record_reaped d.json" {
		t.Errorf("Reap logged %s, want a.json and d.json", got)
	}
	left, _ := os.ReadDir(s.Dir)
	if len(left) != 1 || left[0].Name() != "c.log" {
		t.Errorf("Reap left %v, want c.log alone", left)
	}
}
