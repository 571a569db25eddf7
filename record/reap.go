package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempRetention is far longer than any write takes.
const tempRetention = time.Hour

// Reap removes records and logs that are older than Retention, and the temporary
// files that dead writers left. One bad entry does not end it; the error names
// what could not be removed.
func (s *Store) Reap(ctx context.Context) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reap records: %w", bare(err))
	}
	now := time.Now()
	var errs []error
	for _, entry := range entries {
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		if err := s.reapEntry(entry, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("reap %.64q: %w", entry.Name(), bare(err)))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) reapEntry(entry fs.DirEntry, now time.Time) error {
	retention := s.Retention
	switch name := entry.Name(); {
	case isTempName(name):
		retention = tempRetention
	case !strings.HasSuffix(name, jsonExt) && !strings.HasSuffix(name, logExt):
		return nil
	}
	if retention <= 0 || entry.IsDir() {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if now.Sub(info.ModTime()) <= retention {
		return nil
	}
	if err := os.Remove(filepath.Join(s.Dir, entry.Name())); err != nil {
		return err
	}
	s.log().Info("record_reaped", "file", entry.Name())
	return nil
}

// isTempName reports whether a name has the shape <name>.json.<pid>.<12 hex>.tmp.
func isTempName(s string) bool {
	s, ok := strings.CutSuffix(s, tempExt)
	if !ok {
		return false
	}
	s, random, ok := cutLast(s)
	hex := func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
	if !ok || len(random) != 2*randomLen || !matches(random, 2*randomLen, hex, hex) {
		return false
	}
	s, pid, ok := cutLast(s)
	return ok && matches(pid, 10, isDigit, isDigit) && strings.HasSuffix(s, jsonExt) && s != jsonExt
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
