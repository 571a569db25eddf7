package supervisor

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edgehero/dispatch/exit"
	"golang.org/x/sys/unix"
)

const (
	// keyTime bounds the wait for the key's line. Whoever starts a supervisor
	// writes the key at once.
	keyTime = 30 * time.Second
	// maxKeyLine bounds the key's line, in bytes.
	maxKeyLine = 256
)

// readKey reads the key's line from fd, byte by byte: what follows the line is
// the command's.
func readKey(fd int, limit time.Duration) (exit.Key, error) {
	line, err := readLine(fd, maxKeyLine, time.Now().Add(limit))
	if err != nil {
		return exit.Key{}, fmt.Errorf("read the key from standard input: %w", err)
	}
	key, err := exit.ParseKey(string(line))
	clear(line)
	if err != nil {
		return exit.Key{}, fmt.Errorf("read the key from standard input: %w", err)
	}
	return key, nil
}

// readLine reads up to the first newline, which it takes but does not return.
func readLine(fd, limit int, deadline time.Time) ([]byte, error) {
	line := make([]byte, 0, limit)
	for {
		if err := awaitInput(fd, deadline); err != nil {
			return nil, err
		}
		var b [1]byte
		n, err := unix.Read(fd, b[:])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrUnexpectedEOF
		case b[0] == '\n':
			return line, nil
		case len(line) == limit:
			return nil, fmt.Errorf("the line is longer than %d bytes", limit)
		}
		line = append(line, b[0])
	}
}

// awaitInput returns once fd can be read without waiting.
func awaitInput(fd int, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("it did not come in time")
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}
