package spool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/edgehero/dispatch/worker"
)

// maxHeader bounds the first line of a job's file: everything but the data.
const maxHeader = 64 << 10

// A header is the first line of a job's file.
type header struct {
	Job       worker.Job `json:"job"`       // without its data
	DataBytes int64      `json:"dataBytes"` // the length of the data that follows
}

// A garbageError says why a file can't be a job's.
type garbageError struct{ why string }

func (e *garbageError) Error() string { return "not a job's file: " + e.why }

func garbage(format string, args ...any) error { return &garbageError{fmt.Sprintf(format, args...)} }

func isGarbage(err error) bool {
	var g *garbageError
	return errors.As(err, &g)
}

// headerOf returns the first line of a job's file.
func headerOf(job worker.Job) ([]byte, error) {
	h := header{Job: job, DataBytes: int64(len(job.Data))}
	h.Job.Data = nil
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxHeader {
		return nil, fmt.Errorf("it has %d bytes besides its data; want less than %d", len(line), maxHeader)
	}
	return append(line, '\n'), nil
}

// writeJob makes a job's file, on the disk when it returns, or none. The folder
// is not synced.
func (s *Spool) writeJob(path string, job worker.Job) (err error) {
	head, err := headerOf(job)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	s.step("submit:opened")
	if _, err := f.Write(head); err != nil {
		return err
	}
	s.step("submit:begun")
	if _, err := f.Write(job.Data); err != nil {
		return err
	}
	if s.unsynced {
		return nil
	}
	return f.Sync()
}

// readJob reads the file of the job that n names. The error is a garbageError
// when that file can't be a job's.
func readJob(path string, n name) (worker.Job, os.FileInfo, error) {
	h, rest, info, err := openJob(path, n)
	if err != nil {
		return worker.Job{}, nil, err
	}
	defer rest.Close()
	job := h.Job
	if h.DataBytes > 0 {
		if job.Data, err = rest.data(h.DataBytes); err != nil {
			return worker.Job{}, nil, err
		}
	}
	job.Attempts, job.Stalls = n.attempts, n.stalls
	return job, info, nil
}

// A jobData is the rest of an open job's file.
type jobData struct {
	*bufio.Reader
	file *os.File
	size int64 // what should be left to read
}

func (d *jobData) Close() error { return d.file.Close() }

// data reads the job's data, all that is left of the file.
func (d *jobData) data(want int64) ([]byte, error) {
	if d.size != want {
		return nil, garbage("its data has %d bytes, its first line says %d", d.size, want)
	}
	data := make([]byte, want)
	if _, err := io.ReadFull(d, data); err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, garbage("its data of %d bytes is not JSON", want)
	}
	return data, nil
}

// openJob opens the file of the job that n names and reads its first line.
func openJob(path string, n name) (h header, rest *jobData, info os.FileInfo, err error) {
	// Neither a link is followed, nor does a FIFO block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return header{}, nil, nil, garbage("it is not a regular file")
	}
	if err != nil {
		return header{}, nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			h, rest, info = header{}, nil, nil
		}
	}()
	if info, err = f.Stat(); err != nil {
		return h, nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return h, nil, nil, garbage("it is not a regular file")
	}
	r := bufio.NewReaderSize(f, maxHeader)
	line, err := r.ReadSlice('\n')
	if err == io.EOF || errors.Is(err, bufio.ErrBufferFull) {
		err = garbage("it has no whole first line")
	}
	if err != nil {
		return h, nil, nil, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(line), &h); err != nil {
		return h, nil, nil, garbage("its first line of %d bytes is not a job: %.80q", len(line), err.Error())
	}
	if digestOf(h.Job.ID) != n.digest {
		return h, nil, nil, garbage("it holds another job than its name says")
	}
	return h, &jobData{r, f, info.Size() - int64(len(line))}, info, nil
}

// sameJob reports whether two files are the same submission: one file with two
// names, or a copy of it, as a restored backup has them.
func sameJob(a, b string, n name) (bool, error) {
	infoa, erra := os.Lstat(a)
	infob, errb := os.Lstat(b)
	if err := errors.Join(erra, errb); err != nil {
		return false, err
	}
	if os.SameFile(infoa, infob) {
		return true, nil
	}
	linea, erra := firstLine(a, n)
	lineb, errb := firstLine(b, n)
	err := errors.Join(erra, errb)
	if isGarbage(err) {
		return false, nil
	}
	return err == nil && bytes.Equal(linea, lineb), err
}

func firstLine(path string, n name) ([]byte, error) {
	h, rest, _, err := openJob(path, n)
	if err != nil {
		return nil, err
	}
	defer rest.Close()
	return json.Marshal(h)
}

// cutData removes the data from the file of a job that has ended.
func cutData(path string, n name) error {
	_, rest, info, err := openJob(path, n)
	if isGarbage(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer rest.Close()
	return os.Truncate(path, info.Size()-rest.size)
}
