package record

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes sure that the next n bytes of a file have room. A file system
// that can't reserve is left to find out.
func reserve(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
