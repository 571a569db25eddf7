package record

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// failing is a store whose steps fail as said.
func failing(t *testing.T, faults map[string]syscall.Errno) (s *Store, log *bytes.Buffer) {
	log = &bytes.Buffer{}
	s = &Store{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil))}
	s.faults.step = func(step string) error {
		if errno, ok := faults[step]; ok {
			return &fs.PathError{Op: step, Path: "/home/alice", Err: errno}
		}
		return nil
	}
	return s, log
}

// A record is written in place only where the folder takes no second file, and
// only then and when that succeeded the log says so.
func TestInPlaceOnlyForWantOfASecondFile(t *testing.T) {
	old, r := Build(sampleRun("j", 1)), Build(sampleRun("j", 2))
	for errno, inPlace := range map[syscall.Errno]bool{
		syscall.ENAMETOOLONG: true, syscall.EACCES: true, syscall.EPERM: true, syscall.EROFS: true, syscall.EEXIST: true,
		syscall.ENOSPC: true, syscall.EDQUOT: true,
		syscall.EIO: false, syscall.EMFILE: false, syscall.ENFILE: false, syscall.ENOMEM: false, syscall.EXDEV: false, syscall.EISDIR: false,
	} {
		for _, step := range []string{"create", "write", "sync", "rename"} {
			s, log := failing(t, nil)
			write(t, s, old)
			failed, _ := failing(t, map[string]syscall.Errno{step: errno})
			s.faults = failed.faults
			err := s.Write(r)
			checkNoTemp(t, s.Dir)
			if inPlace {
				checkRead(t, s, r)
				if want := "record_written_in_place job=j code=" + code(errno); err != nil || !strings.Contains(log.String(), want) {
					t.Errorf("%s at %s: Write = %v and the log %q, want it to say %s", code(errno), step, err, log, want)
				}
				continue
			}
			checkRead(t, s, old)
			if want := "record_write_failed job=j code=" + code(errno); !errors.Is(err, errno) || !strings.Contains(log.String(), want) || strings.Contains(log.String(), "in_place") {
				t.Errorf("%s at %s: Write = %v and the log %q, want it to say %s alone", code(errno), step, err, log, want)
			}
			if strings.Contains(err.Error()+log.String(), "alice") {
				t.Errorf("%s at %s: Write = %v and the log %q: they hold a path", code(errno), step, err, log)
			}
		}
	}
}

// A write in place that fails is an error, leaves the old record or one that is
// unparseable, and is not told as a success.
func TestInPlaceFails(t *testing.T) {
	old, r := Build(sampleRun("j", 1)), Build(sampleRun("j", 2))
	for step, readable := range map[string]bool{"mark": true, "sync mark": false, "write in place": false, "sync in place": false, "unmark": false} {
		s, log := failing(t, nil)
		write(t, s, old)
		failed, _ := failing(t, map[string]syscall.Errno{"create": syscall.EROFS, step: syscall.EIO})
		s.faults = failed.faults
		if err := s.Write(r); !errors.Is(err, syscall.EIO) || strings.Contains(log.String(), "in_place") || !strings.Contains(log.String(), "code=EIO") {
			t.Errorf("%s fails: Write = %v and the log %q, want EIO", step, err, log)
		}
		got, err := s.Read("j")
		var bad *UnparseableError
		if readable && (err != nil || !reflect.DeepEqual(got, old)) || !readable && !errors.As(err, &bad) {
			t.Errorf("%s fails: Read = %+v, %v", step, got, err)
		}
	}
}

// When the folder can't be synced the record stands and may not outlive a crash.
func TestFolderIsNotSynced(t *testing.T) {
	for _, faults := range []map[string]syscall.Errno{
		{"sync folder": syscall.EIO}, {"sync folder": syscall.ENOSPC}, {"create": syscall.EROFS, "sync folder": syscall.EIO},
	} {
		s, log := failing(t, faults)
		r := Build(sampleRun("j", 1))
		err := s.Write(r)
		if !errors.Is(err, faults["sync folder"]) || !strings.Contains(err.Error(), "sync folder") || strings.Contains(log.String(), "in_place") {
			t.Errorf("faults %v: Write = %v and the log %q, want that the folder was not synced", faults, err, log)
		}
		checkRead(t, s, r)
		checkNoTemp(t, s.Dir)
	}
}

// A death in place can leave any pages old and the others new.
func TestMixedPagesAreUnparseable(t *testing.T) {
	const page = 4096
	older, newer := killedRecord(1), killedRecord(2)
	a, err1 := older.line()
	b, err2 := newer.line()
	if err1 != nil || err2 != nil || len(a) != len(b) || len(a) < 3*page {
		t.Fatalf("want two records of one length of some pages: %d, %d, %v, %v", len(a), len(b), err1, err2)
	}
	for cut := 1; cut < len(a); cut += 5 {
		if _, err := Parse(append(append([]byte{unfinished}, b[1:cut]...), a[cut:]...)); err == nil {
			t.Fatalf("Parse of a mark, %d bytes of the new record and the rest of the old one = nil, want an error", cut)
		}
	}
}

// A death before the first byte is touched leaves the earlier record whole.
func TestInPlaceTouchesNothingEarly(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	old := Build(sampleRun("j", 1))
	write(t, s, old)
	var seen Record
	readErr := errors.New("the step was not reached")
	s.faults.step = func(step string) error {
		switch step {
		case "create":
			return syscall.EROFS
		case "mark":
			seen, readErr = s.Read("j")
		}
		return nil
	}
	write(t, s, Build(sampleRun("j", 2)))
	if readErr != nil || !reflect.DeepEqual(seen, old) {
		t.Errorf("Read before the write = %+v, %v, want the earlier record", seen, readErr)
	}
}

// The temporary file stands beside the record, wherever the system keeps others.
func TestTempFileBesideTheRecord(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	t.Setenv("TMPDIR", filepath.Join(s.Dir, "missing"))
	var beside []string
	s.faults.step = func(step string) error {
		if step == "rename" {
			beside, _ = filepath.Glob(filepath.Join(s.Dir, "j.json."+pid()+".*.tmp"))
		}
		return nil
	}
	write(t, s, Build(sampleRun("j", 1)))
	if len(beside) != 1 || !isTempName(filepath.Base(beside[0])) {
		t.Errorf("before the rename the folder has %v, want one temporary file", beside)
	}
}
