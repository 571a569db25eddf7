// Package instance says which processes of a host live. A process that makes
// things outside of itself takes an id, which stands on all of them, and holds
// the file of that name locked (flock) for as long as it lives: so the kernel,
// not a pid or a clock, says when it is gone. Whoever can lock the file then
// goes through what the process left, and removes the file last.
//
// The folder of the files must be on a file system of this host: over NFS a lock
// can outlive its holder, or be granted twice.
package instance

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	idDigits   = 12
	tempPrefix = ".new-"
)

// ErrHeld says that a file's owner lives, or that another sweeper goes through
// what it left.
var ErrHeld = errors.New("the instance's file is held")

// A File is the locked file of an instance, its owner's or a sweeper's.
type File struct {
	ID   string // 12 hex digits
	path string
	lock *os.File // nil once closed
}

// New makes an instance whose file lies in folder, which must be there. The file
// is made and locked under a temporary name: under its own, which rename gives
// it, it is never seen unlocked while its process lives. step is called with
// instance:made and instance:locked, for tests that end the process there.
func New(folder string, step func(string), rename func(from, to string) error) (*File, error) {
	for range 100 {
		f, err := tryNew(folder, step, rename)
		if errors.Is(err, ErrHeld) || errors.Is(err, fs.ErrNotExist) {
			continue // a sweep took the file before it was locked
		}
		return f, err
	}
	return nil, errors.New("the instance's file vanished each time")
}

func tryNew(folder string, step func(string), rename func(from, to string) error) (*File, error) {
	id := make([]byte, idDigits/2)
	_, _ = rand.Read(id) // never fails
	f := &File{ID: hex.EncodeToString(id)}
	f.path = filepath.Join(folder, f.ID)
	temp := filepath.Join(folder, tempPrefix+f.ID)
	var err error
	if f.lock, err = os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	step("instance:made")
	if err = hold(f.lock, temp); err == nil {
		step("instance:locked")
		err = rename(temp, f.path)
	}
	if err != nil {
		_ = os.Remove(temp)
		_ = f.lock.Close()
		return nil, err
	}
	return f, nil
}

// Take locks the file of that name in folder, so that one sweeper at a time goes
// through what its owner left. The error is ErrHeld while the owner lives, and
// fs.ErrNotExist where no file is: removing it is the last thing that an owner
// or a sweeper does. No link is followed.
func Take(folder, name string) (*File, error) {
	f := &File{ID: strings.TrimPrefix(name, tempPrefix), path: filepath.Join(folder, name)}
	var err error
	// What is no regular file must not block.
	if f.lock, err = os.OpenFile(f.path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0); err != nil {
		return nil, err
	}
	if err := hold(f.lock, f.path); err != nil {
		f.lock.Close()
		return nil, err
	}
	return f, nil
}

// hold locks the file that was opened at path. Whoever held it before may have
// removed it since; no other lies there, as no id is made twice.
func hold(f *os.File, path string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	if err != nil {
		return err
	}
	_, err = os.Lstat(path)
	return err
}

// Close lets the file go. It is removed, unless something of its owner is left
// for a sweep to find. Close may be called again.
func (f *File) Close(left bool) error {
	if f.lock == nil {
		return nil
	}
	var err error
	if !left {
		if err = os.Remove(f.path); errors.Is(err, fs.ErrNotExist) {
			err = nil // by an owner that could not lock what it had made
		}
	}
	// Unlocked last: until then nobody else may touch what carries the id.
	err = errors.Join(err, f.lock.Close())
	f.lock = nil
	return err
}

// IsID reports whether a name is an instance's, and so its file's.
func IsID(name string) bool {
	return len(name) == idDigits && strings.Trim(name, "0123456789abcdef") == ""
}

// IsTemp reports whether a name is that of the file of an instance that is being
// made, or was when its process ended.
func IsTemp(name string) bool {
	id, ok := strings.CutPrefix(name, tempPrefix)
	return ok && IsID(id)
}
