package container

import (
	"bytes"
	"errors"
	"sync"
)

// A logBuffer is a log that tells when it has seen a text.
type logBuffer struct {
	mu      sync.Mutex
	text    []byte
	awaited string
	found   chan struct{}
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if b.awaited != "" && bytes.Contains(b.text, []byte(b.awaited)) {
		b.awaited = ""
		close(b.found)
	}
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

type countingWriter struct{ n int }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
