package spool

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

// An instance is one process's use of a spool. It holds the file of its id locked
// for as long as the process lives: so the kernel, not a pid or a clock, says
// when the owner of a claim is gone.
type instance struct {
	id     string
	folder string
	lock   *os.File
}

const (
	instanceDigits = 12
	tempPrefix     = ".new-"
)

// newInstance makes an instance whose file lies in folder. It is made and locked
// under another name first: under its own it is never seen unlocked while its
// process lives.
func newInstance(folder string, step func(string)) (*instance, error) {
	for range 100 {
		i, err := tryInstance(folder, step)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
			continue // a sweep took the file before it was locked
		}
		return i, err
	}
	return nil, errors.New("its file vanished each time")
}

func tryInstance(folder string, step func(string)) (_ *instance, err error) {
	nonce := make([]byte, instanceDigits/2)
	_, _ = rand.Read(nonce) // never fails
	i := &instance{id: hex.EncodeToString(nonce), folder: folder}
	temp := filepath.Join(folder, tempPrefix+i.id)
	if i.lock, err = os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	step("open:made")
	if err = lockFile(i.lock, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		step("open:locked")
		err = renameNew(temp, i.path())
	}
	if err != nil {
		_ = os.Remove(temp)
		_ = i.lock.Close()
		return nil, err
	}
	return i, nil
}

func (i *instance) path() string { return filepath.Join(i.folder, i.id) }

// close ends the instance; its file is removed unless something of it is left
// for a sweep to find.
func (i *instance) close(left bool) error {
	var err error
	if !left {
		err = os.Remove(i.path())
	}
	return errors.Join(err, i.lock.Close()) // unlocked last
}

// gone reports whether the process of the lock file at path has ended; a file
// that is missing is its owner's or a sweep's last step.
func gone(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = lockFile(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// lockFile locks an open file until it is closed.
func lockFile(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func isInstance(id string) bool { return isHex(id, instanceDigits) }

// isTempInstance reports whether a file's name is that of an instance's file
// that is being made.
func isTempInstance(file string) bool {
	id, ok := strings.CutPrefix(file, tempPrefix)
	return ok && isInstance(id)
}
