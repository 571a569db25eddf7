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
	random func() string           // the temporary name's random part
	step   func(step string) error // called before each step, which then fails with its error
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
	err = f.replace(data)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(f.dir, folderMod); err != nil {
			return nil, bare(err)
		}
		err = f.replace(data)
	}
	var unsynced *syncError
	if err == nil || errors.As(err, &unsynced) || !takesNoSecondFile(err) {
		return nil, bare(err)
	}
	inPlace = bare(err)
	if err := f.overwrite(data); err != nil {
		return inPlace, err
	}
	return inPlace, f.syncFolder()
}

// takesNoSecondFile reports whether an error says that a folder has no place for
// a second file: its name is too long, new names are not allowed or are taken, or
// there is no room. After any other error, such as EIO, the old file is best left
// alone.
func takesNoSecondFile(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENAMETOOLONG, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EEXIST, syscall.ENOSPC, syscall.EDQUOT,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// A syncError says that the file is replaced and may not outlive a crash.
type syncError struct{ err error }

func (e *syncError) Error() string { return "sync folder: " + e.err.Error() }
func (e *syncError) Unwrap() error { return e.err }

func (f atomicFile) replace(data []byte) (err error) {
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
	if err := f.writeAt(temp, "write", data, 0); err != nil {
		return err
	}
	if err := f.syncFile(temp, "sync"); err != nil {
		return err
	}
	if err := f.step("rename"); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), f.path()); err != nil {
		return err
	}
	renamed = true
	return f.syncFolder()
}

// createTemp makes a file that nobody else has. A name that is taken is left
// alone, whoever took it.
func (f atomicFile) createTemp() (temp *os.File, err error) {
	if err := f.step("create"); err != nil {
		return nil, err
	}
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
// name, through no link, and not touched before there is room for what comes.
func (f atomicFile) overwrite(data []byte) (err error) {
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
	if err := reserve(file, int64(len(data))); err != nil {
		return fmt.Errorf("reserve room: %w", err)
	}
	if err := f.fill(file, data); err != nil {
		return bare(err)
	}
	back := make([]byte, len(data))
	if _, err := file.ReadAt(back, 0); err != nil || !bytes.Equal(back, data) {
		return errors.New("write in place: what was written does not read back")
	}
	return nil
}

// unfinished is the first byte of a file while it is written in place: no JSON
// begins with it.
const unfinished = '!'

// fill gives a file its new text. A death on the way can leave some pages old and
// some new, which might be JSON that was never written: so the first byte says
// unfinished before any other changes, and is put right when all others are.
func (f atomicFile) fill(file *os.File, data []byte) error {
	if err := f.writeAt(file, "mark", []byte{unfinished}, 0); err != nil {
		return err
	}
	if err := f.syncFile(file, "sync mark"); err != nil {
		return err
	}
	if err := f.writeAt(file, "write in place", data[1:], 1); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	if err := f.syncFile(file, "sync in place"); err != nil {
		return err
	}
	if err := f.writeAt(file, "unmark", data[:1], 0); err != nil {
		return err
	}
	return f.syncFile(file, "sync unmarked")
}

func (f atomicFile) path() string { return filepath.Join(f.dir, f.name) }

func (f atomicFile) writeAt(file *os.File, step string, data []byte, offset int64) error {
	if err := f.step(step); err != nil {
		return err
	}
	_, err := file.WriteAt(data, offset)
	return err
}

func (f atomicFile) syncFile(file *os.File, step string) error {
	if err := f.step(step); err != nil || !f.sync {
		return err
	}
	return file.Sync()
}

// syncFolder makes a rename outlive a crash.
func (f atomicFile) syncFolder() error {
	err := f.step("sync folder")
	if err == nil && f.sync {
		var dir *os.File
		if dir, err = os.Open(f.dir); err == nil {
			err = dir.Sync()
			dir.Close()
		}
	}
	if err != nil {
		return &syncError{bare(err)}
	}
	return nil
}

func (f atomicFile) random() string {
	if f.faults.random != nil {
		return f.faults.random()
	}
	var b [randomLen]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (f atomicFile) step(name string) error {
	if f.faults.step == nil {
		return nil
	}
	return f.faults.step(name)
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
