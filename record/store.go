package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// A Store keeps records and run logs in a folder. It is safe for concurrent use,
// also by several processes.
type Store struct {
	// Dir is the folder, made when it is not there.
	Dir string
	// NoSync leaves out the syncs of a record and its folder: faster, and a
	// crash of the machine may lose the record.
	NoSync bool
	// Retention is the age at which Reap removes records and logs. Defaults to
	// keeping them for ever.
	Retention time.Duration
	// Logger takes what went wrong. Defaults to no log.
	Logger *slog.Logger

	faults faults // of tests
}

// An UnparseableError says that a file is there at a record's name and can't be
// read as one.
type UnparseableError struct {
	File string // its name in the folder
	Err  error
}

// Error implements error.
func (e *UnparseableError) Error() string {
	return fmt.Sprintf("parse record %.64q: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *UnparseableError) Unwrap() error { return e.Err }

// maxRecordLen is far above what a record can have, and bounds what a planted
// file makes a reader take.
const maxRecordLen = 4 << 20

func (s *Store) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Write keeps a record in place of the job's earlier one. When it returns nil
// the record outlives a crash of the machine, unless NoSync says otherwise. A
// crash before that leaves the earlier record or this one, whole.
//
// After an error the earlier record still stands, with two exceptions: when the
// sync of the folder failed, this one does, and a crash may bring the earlier one
// back; when a write in place failed, what stands may be unparseable. Writing the
// same record again is right after any error.
func (s *Store) Write(r Record) error {
	err := s.write(r)
	if err != nil {
		s.log().Error("record_write_failed", "job", r.JobID, "code", code(err))
		return fmt.Errorf("write record of job %.64q: %w", r.JobID, err)
	}
	return nil
}

func (s *Store) write(r Record) error {
	usual, hashed, err := names(r.JobID)
	if err != nil {
		return err
	}
	if !utf8.ValidString(r.JobID) {
		return errors.New("its id is not UTF-8 and could not be read back")
	}
	line, err := r.line()
	if err != nil {
		return err
	}
	name := usual
	if hashed != usual && s.belongsToAnother(usual+jsonExt, r.JobID) {
		name = hashed
	}
	inPlace, err := atomicFile{s.Dir, name + jsonExt, !s.NoSync, s.faults}.write(line)
	if inPlace != nil && err == nil {
		s.log().Warn("record_written_in_place", "job", r.JobID, "code", code(inPlace))
	}
	return err
}

// belongsToAnother reports whether a file is the record of another job. It
// decodes only what does not begin like a record of this one.
func (s *Store) belongsToAnother(file, jobID string) bool {
	text, err := s.readFile(file, nil)
	if err != nil {
		return false
	}
	if id, err := json.Marshal(jobID); err == nil && bytes.HasPrefix(text, append([]byte(`{"jobId":`), append(id, `,"kind":`...)...)) {
		return false
	}
	r, err := Parse(text)
	return err == nil && r.JobID != "" && r.JobID != jobID
}

// Read returns the record of a job. The error is [fs.ErrNotExist] when there is
// none and an [UnparseableError] when what is there is no record.
func (s *Store) Read(jobID string) (Record, error) {
	usual, hashed, err := names(jobID)
	if err != nil {
		return Record{}, err
	}
	r, err := s.readName(usual+jsonExt, nil)
	if hashed != usual && (err != nil || r.JobID != jobID) {
		if second, secondErr := s.readName(hashed+jsonExt, nil); !errors.Is(secondErr, fs.ErrNotExist) {
			r, err = second, secondErr
		}
	}
	if err == nil && r.JobID != jobID {
		err = fs.ErrNotExist // another job's
	}
	if err != nil {
		return Record{}, fmt.Errorf("read record of job %.64q: %w", jobID, err)
	}
	return r, nil
}

// All yields every record of the folder by name. A file that is no record comes
// as an [UnparseableError]; one that vanishes meanwhile is passed over.
func (s *Store) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		entries, err := os.ReadDir(s.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Record{}, fmt.Errorf("list records: %w", bare(err)))
			return
		}
		buffer := make([]byte, 0, 16<<10)
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), jsonExt) {
				continue
			}
			r, err := s.readName(entry.Name(), buffer)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Previous returns the newest record of a schedule's jobs whose slot is before
// an instant, whatever its outcome, nil when there is none. Files that can't be
// read as records are passed over and counted.
func (s *Store) Previous(schedule string, before time.Time) (newest *Record, unparseable int, err error) {
	var newestSlot time.Time
	for r, err := range s.All() {
		var bad *UnparseableError
		switch {
		case errors.As(err, &bad):
			unparseable++
			continue
		case err != nil:
			return nil, 0, fmt.Errorf("find previous run of schedule %.64q: %w", schedule, err)
		}
		_, of, slot, ok := scheduled(r.JobID)
		if ok && of == schedule && slot.Before(before) && (newest == nil || slot.After(newestSlot)) {
			newest, newestSlot = &r, slot
		}
	}
	return newest, unparseable, nil
}

// readName reads the record in a file. It may use buffer for the text.
func (s *Store) readName(file string, buffer []byte) (Record, error) {
	text, err := s.readFile(file, buffer)
	if err != nil {
		return Record{}, err
	}
	r, err := Parse(text)
	if err != nil {
		return Record{}, &UnparseableError{file, err}
	}
	return r, nil
}

// readFile reads a regular file of the folder. It follows no link and does not
// wait for a writer of a FIFO.
func (s *Store) readFile(file string, buffer []byte) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, file), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &UnparseableError{file, errors.New("it is a symbolic link")}
	}
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecordLen {
		return nil, &UnparseableError{file, errors.New("it is no regular file of a record's length")}
	}
	size := int(info.Size())
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	n, err := io.ReadFull(f, buffer[:size])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, bare(err)
	}
	return buffer[:n], nil
}

// bare takes the path off an error: a folder's path can hold an account's name.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w", path.Op, path.Err)
	case errors.As(err, &link):
		return fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return err
}
