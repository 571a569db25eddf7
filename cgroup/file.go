package cgroup

import (
	"bytes"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// fileSize is more than any file that is read here has: the longest, cpu.stat,
// is under 1 KiB on Linux 6.18.
const fileSize = 4096

// A readFile returns the content of one file of a cgroup in buf, and nothing
// when it cannot be read: reading never fails a job. Of a file that is longer
// than buf it returns whole lines.
type readFile func(name string, buf []byte) []byte

func fsReader(cgroup fs.FS) readFile {
	return func(name string, buf []byte) []byte {
		f, err := cgroup.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		n, err := io.ReadFull(f, buf)
		if err == nil {
			return wholeLines(buf)
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil
		}
		return buf[:n]
	}
}

// A dir is an open directory of a cgroup. Its files are read with bare system
// calls: os.Open costs four allocations a file and, as these files can be
// polled, a registration with the runtime's poller.
type dir struct{ fd int }

func openDir(path string) (dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	return dir{fd}, err
}

func (d dir) close() { unix.Close(d.fd) }

func (d dir) read(name string, buf []byte) []byte {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	})
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	// One read gives all that fits: these files are each one record of the
	// kernel, with no end in the middle.
	n, err := retry(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil
	}
	if n == len(buf) {
		return wholeLines(buf)
	}
	return buf[:n]
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func wholeLines(b []byte) []byte { return b[:bytes.LastIndexByte(b, '\n')+1] }
