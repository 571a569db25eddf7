package record

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// LogOptions say how a job's output is kept. The zero value keeps none.
type LogOptions struct {
	// Enabled keeps the output in a file.
	Enabled bool
	// Suppressed keeps none for this job.
	Suppressed bool
	// MaxBytes cuts the log of one run, with a mark where it was cut. Defaults to
	// no bound.
	MaxBytes int64
}

// A RunLog is the file of a job's raw output. It never fails: what can't be kept
// is one line in the store's log, and the run goes on.
type RunLog struct {
	mu     sync.Mutex
	file   *os.File // nil when nothing is kept, any more
	left   int64
	capped bool
	max    int64
	jobID  string
	log    *slog.Logger
}

var _ io.WriteCloser = (*RunLog)(nil)

// OpenLog opens the log of a job, beside its record, to append to it.
func (s *Store) OpenLog(jobID string, options LogOptions) *RunLog {
	l := &RunLog{jobID: jobID, log: s.log(), max: options.MaxBytes, left: options.MaxBytes, capped: options.MaxBytes > 0}
	if !options.Enabled || options.Suppressed {
		return l
	}
	file, err := s.openLogFile(jobID)
	if err != nil {
		l.log.Error("run_log_failed", "job", jobID, "code", code(err))
		return l
	}
	l.file = file
	return l
}

func (s *Store) openLogFile(jobID string) (*os.File, error) {
	name, err := FileName(jobID)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, folderMod); err != nil {
		return nil, err
	}
	// Non-blocking: a FIFO planted at the name has no reader and would hang.
	file, err := os.OpenFile(filepath.Join(s.Dir, name+logExt),
		os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, os.ErrInvalid)
	}
	return file, nil
}

// Write appends to the log. It takes all of p, always.
func (l *RunLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	keep := p
	if l.capped && int64(len(p)) > l.left {
		keep = p[:l.left]
	}
	_, err := l.file.Write(keep)
	l.left -= int64(len(keep))
	if err == nil && len(keep) < len(p) {
		_, err = l.file.WriteString("\n[log cut at " + strconv.FormatInt(l.max, 10) + " bytes]\n")
		l.end()
	}
	if err != nil {
		l.log.Error("run_log_failed", "job", l.jobID, "code", code(err))
		l.end()
	}
	return len(p), nil
}

// Close closes the file. It may be called again.
func (l *RunLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	return nil
}

func (l *RunLog) end() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
