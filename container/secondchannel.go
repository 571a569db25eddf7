package container

import (
	"errors"
	"fmt"
	"io"
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
	// An os.Root follows links that stay beneath it, so the name is looked at
	// first, and the open file must be what was seen there.
	seen, err := root.Lstat(exitFileName)
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", withoutPath(err))
	}
	if !seen.Mode().IsRegular() {
		return nil, errors.New("read the exit file: it is no regular file")
	}
	f, err := root.OpenFile(exitFileName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", withoutPath(err))
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.New("read the exit file: it was replaced meanwhile")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxExitFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the exit file: %w", withoutPath(err))
	}
	if len(text) > maxExitFile {
		return nil, errors.New("read the exit file: it is longer than 64 KiB")
	}
	return text, nil
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
