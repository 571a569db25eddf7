package record

import (
	"errors"
	"syscall"
	"testing"
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
