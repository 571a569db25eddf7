package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// An OOMWatch keeps the last counts of a cgroup's memory.events, also when the
// cgroup is removed by somebody else. Its methods may be called at the same time.
type OOMWatch struct {
	dir     dir
	changes *os.File
	ended   chan struct{}

	mu   sync.Mutex
	last Events
	ok   bool
}

// WatchOOM starts a watch on the cgroup whose directory is path. Close it. Each
// watch takes one of the user's inotify instances
// (fs.inotify.max_user_instances, 128 where nothing else is set).
func WatchOOM(path string) (*OOMWatch, error) {
	w, err := watchOOM(path)
	if err != nil {
		return nil, fmt.Errorf("watch memory.events of cgroup %.*q: %w", maxName, filepath.Base(path), err)
	}
	return w, nil
}

func watchOOM(path string) (*OOMWatch, error) {
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		d.close()
		return nil, err
	}
	changes := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(path, "memory.events"), unix.IN_MODIFY); err != nil {
		d.close()
		return nil, errors.Join(err, changes.Close())
	}
	w := &OOMWatch{dir: d, changes: changes, ended: make(chan struct{})}
	w.refresh()
	go w.follow()
	return w, nil
}

// follow reads the counts at each change until Close ends its read.
func (w *OOMWatch) follow() {
	defer close(w.ended)
	buf := make([]byte, fileSize)
	for {
		if _, err := w.changes.Read(buf); err != nil {
			return
		}
		w.refresh()
	}
}

// refresh reads the counts. What cannot be read leaves the last ones.
func (w *OOMWatch) refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := parseEvents(w.dir.read("memory.events", make([]byte, fileSize))); ok {
		w.last, w.ok = e, true
	}
}

// Events returns the last counts; ok is false when there were none to read, and
// whether something was killed is then unknown. It may be called after Close.
func (w *OOMWatch) Events() (e Events, ok bool) {
	w.refresh()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.ok
}

// Close reads the counts once more and ends the watch. It may be called again.
func (w *OOMWatch) Close() error {
	w.refresh()
	err := w.changes.Close()
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir.fd >= 0 {
		w.dir.close()
		w.dir.fd = -1
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
