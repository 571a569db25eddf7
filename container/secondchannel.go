package container

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// The supervisor writes its exit line to a file as well, in a folder of its own
// that is empty at the start: a runtime's client can lose the end of a large
// output. An image that has its own supervisor calls it with
// --exit-file=ExitFile.
const (
	ExitDir  = "/run/dispatch"
	ExitFile = ExitDir + "/" + exitFileName

	exitFileName = "exit.json"
)

// maxExitFile is the longest exit line, 64 KiB, and its newline.
const maxExitFile = 64<<10 + 1

// readExitFile reads the exit line that was written beneath dir. The job could
// write there too: no link is followed, only a regular file is read, and a FIFO
// does not block.
func readExitFile(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", withoutPath(err))
	}
	defer root.Close()
	f, err := openRegular(root, exitFileName)
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", withoutPath(err))
	}
	defer f.Close()
	text, err := readAtMost(f, maxExitFile)
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", err)
	}
	return text, nil
}

// errIrregular says that what should be a regular file is none.
var errIrregular = errors.New("it is no regular file")

// openRegular opens a regular file of root for reading: no link is followed,
// and a FIFO does not block.
func openRegular(root *os.Root, name string) (*os.File, error) {
	// An os.Root follows links that stay beneath it, so the name is looked at
	// first, and the open file must be what was seen there.
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := checkSame(root, name, f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkSame returns an error unless the open file is the one of that name.
func checkSame(root *os.Root, name string, f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, there) {
		return errors.New("it was replaced meanwhile")
	}
	return nil
}

// withoutPath returns the cause of a file error, which says nothing of where
// the file lies.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
