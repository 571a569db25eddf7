package record

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	fileMode  = 0o600 // a record names projects and hosts
	folderMod = 0o700
	tempExt   = ".tmp"
	randomLen = 6 // bytes, two hex characters each
)

// faults are a test's hands in a write: the zero value does nothing.
type faults struct {
	random func() string     // the temporary name's random part
	step   func(step string) // called before each step
}

// An atomicFile is one file of a folder to be replaced as a whole.
type atomicFile struct {
	dir, name string
	sync      bool
	faults    faults
}

// write replaces the file by a rename, so that a death at any point leaves the
// old file or the new one. Where the folder takes no second file it writes in
// place instead, and inPlace says why: only there a death can leave a cut file.
func (f atomicFile) write(data []byte) (inPlace, err error) {
	renameErr := f.replace(data)
	if errors.Is(renameErr, fs.ErrNotExist) {
		if err := os.MkdirAll(f.dir, folderMod); err != nil {
			return nil, bare(err)
		}
		renameErr = f.replace(data)
	}
	var unsynced *syncError
	if renameErr == nil || errors.As(renameErr, &unsynced) {
		return nil, renameErr
	}
	return bare(renameErr), f.overwrite(data)
}

// A syncError says that the file is replaced and may not outlive a crash.
type syncError struct{ err error }

func (e *syncError) Error() string { return "sync folder: " + e.err.Error() }
func (e *syncError) Unwrap() error { return e.err }

func (f atomicFile) replace(data []byte) (err error) {
	f.step("create")
	temp, err := f.createTemp()
	if err != nil {
		return err
	}
	renamed := false
	defer func() {
		temp.Close()
		if !renamed {
			os.Remove(temp.Name())
		}
	}()
	f.step("write")
	if _, err := temp.Write(data); err != nil {
		return err
	}
	f.step("sync")
	if f.sync {
		if err := temp.Sync(); err != nil {
			return err
		}
	}
	f.step("rename")
	if err := os.Rename(temp.Name(), f.path()); err != nil {
		return err
	}
	renamed = true
	f.step("sync folder")
	if err := f.syncFolder(); err != nil {
		return &syncError{bare(err)}
	}
	return nil
}

// createTemp makes a file that nobody else has. A name that is taken is left
// alone, whoever took it.
func (f atomicFile) createTemp() (temp *os.File, err error) {
	for range 3 {
		temp, err = os.OpenFile(f.path()+"."+strconv.Itoa(os.Getpid())+"."+f.random()+tempExt,
			os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, fileMode)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return temp, err
}

// overwrite writes the file in place: only a regular file that has no other
// name, through no link, and not cut before there is room for what comes.
func (f atomicFile) overwrite(data []byte) (err error) {
	f.step("open in place")
	file, err := os.OpenFile(f.path(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return bare(err)
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1 {
		return fmt.Errorf("write in place: it is no regular file with one name: %w", fs.ErrInvalid)
	}
	if stat.Size == 0 {
		defer func() { // leaves no empty file where there was none
			if err != nil {
				os.Remove(f.path())
			}
		}()
	}
	f.step("reserve")
	if err := reserve(file, int64(len(data))); err != nil {
		return fmt.Errorf("reserve room: %w", err)
	}
	f.step("write in place")
	if _, err := file.WriteAt(data, 0); err != nil {
		return bare(err)
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return bare(err)
	}
	if f.sync {
		if err := file.Sync(); err != nil {
			return bare(err)
		}
		if err := f.syncFolder(); err != nil {
			return &syncError{bare(err)}
		}
	}
	back := make([]byte, len(data))
	if _, err := file.ReadAt(back, 0); err != nil || !bytes.Equal(back, data) {
		return errors.New("write in place: what was written does not read back")
	}
	return nil
}

func (f atomicFile) path() string { return filepath.Join(f.dir, f.name) }

func (f atomicFile) syncFolder() error {
	if !f.sync {
		return nil
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func (f atomicFile) random() string {
	if f.faults.random != nil {
		return f.faults.random()
	}
	var b [randomLen]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (f atomicFile) step(name string) {
	if f.faults.step != nil {
		f.faults.step(name)
	}
}

// code returns the name of the error's errno, such as ENOSPC: all of an error
// that a log needs.
func code(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return "invalid"
}
