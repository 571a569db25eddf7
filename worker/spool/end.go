package spool

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// historyCheck is after how many ends the history is cut.
const historyCheck = 256

// end ends the job whose file is at path. The rename decides it; after that the
// error says that it is not filed yet.
func (s *Spool) end(path string, n name) error {
	err := s.move(path, filepath.Join(s.claims, endPrefix+n.String()))
	if err != nil && !isSync(err) {
		return err
	}
	return s.file(s.claims, n)
}

// file files a job that has ended, from its end-NAME in an instance's folder: the
// id becomes free, the data goes, and the rest is kept for a while. Each step may
// have been done before.
func (s *Spool) file(claims string, n name) error {
	path := filepath.Join(claims, endPrefix+n.String())
	s.step("end:marked")
	if err := s.freeID(path, n); err != nil {
		return err
	}
	s.step("end:freed")
	if err := cutData(path, n); err != nil {
		return err
	}
	s.step("end:cut")
	// Not synced: lost, it is done again.
	if err := renameNew(path, s.path(endedFolder, n.String())); err != nil {
		return err
	}
	s.step("end:filed")
	if s.settled.Add(1)%historyCheck == 0 {
		s.cutHistory()
	}
	return nil
}

// freeID removes the link of a job's file in ids, unless that is another job's by
// now.
func (s *Spool) freeID(path string, n name) error {
	id := s.path(idsFolder, n.digest)
	same, err := sameJob(path, id, n)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Lstat(path)
		return err // nil: it is the link that is missing
	}
	if err != nil || !same {
		return err
	}
	err = os.Remove(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cutHistory removes the oldest ended jobs beyond the bound.
func (s *Spool) cutHistory() {
	names, err := s.names(s.path(endedFolder))
	if err != nil {
		s.config.Log.Warn("spool_history_failed", "error", bare(err))
		return
	}
	slices.SortFunc(names, func(a, b name) int { return cmp.Compare(a.at, b.at) })
	for _, n := range names[:max(0, len(names)-s.config.History)] {
		err := os.Remove(s.path(endedFolder, n.String()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.config.Log.Warn("spool_history_failed", "error", bare(err))
			return
		}
	}
}
