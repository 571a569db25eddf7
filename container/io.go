package container

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/edgehero/dispatch/exit"
)

// maxInput bounds a job's input, which is held in memory while the run starts.
const maxInput = 64 << 20

// maxRefusal is how much of a client's stderr is kept to recognise a refusal.
// The job's own stderr comes the same way, so it is never logged.
const maxRefusal = 4 << 10

// stdin returns what goes into a run: the key's line, then the input. It is nil
// when nothing goes in.
func (i IO) stdin() (io.Reader, error) {
	var text []byte
	if !i.Key.IsZero() {
		text = append([]byte(i.Key.Reveal()), '\n')
	}
	if i.Stdin != nil {
		input, err := io.ReadAll(io.LimitReader(i.Stdin, maxInput+1))
		if err != nil {
			return nil, fmt.Errorf("read the job's input: %w", err)
		}
		if len(input) > maxInput {
			return nil, fmt.Errorf("read the job's input: %w: it is longer than 64 MiB; mount a file instead", ErrSpec)
		}
		text = append(text, input...)
	} else if text == nil {
		return nil, nil
	}
	return bytes.NewReader(text), nil
}

// An output takes what a run writes, from several streams at once. It never
// fails: a full log disk must not end a run.
type output struct {
	mu      sync.Mutex
	log     io.Writer
	tail    exit.Tail
	streams []*stream
}

func newOutput(log io.Writer) *output {
	if log == nil {
		log = io.Discard
	}
	return &output{log: log}
}

// Write passes p to the tail and to the log, for a run that has one stream.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.Write(p)
	// The tail has it; what the log could not take is lost there alone.
	_, _ = o.log.Write(p)
	return len(p), nil
}

// A stream is one of several that a client keeps apart. Its text goes to the log
// as it comes and to the tail in whole lines: the client hands over a line in
// pieces, and what another stream has to say must not split the exit line.
type stream struct {
	to   *output
	part []byte // of a line whose end is yet to come
	long bool   // the line is longer than an exit line, and goes as it comes
}

// stream returns a further stream. Of several that end without a newline the
// last one's end is the end of the tail.
func (o *output) stream() *stream {
	s := &stream{to: o}
	o.streams = append(o.streams, s)
	return s
}

func (s *stream) Write(p []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.toTail(p)
	_, _ = s.to.log.Write(p)
	return len(p), nil
}

func (s *stream) toTail(p []byte) {
	// Most of a large output has no newline at all, or one near its end.
	if bytes.IndexByte(p, '\n') >= 0 {
		end := bytes.LastIndexByte(p, '\n') + 1
		s.flush()
		s.to.tail.Write(p[:end])
		s.long, p = false, p[end:]
	}
	if s.long = s.long || len(s.part)+len(p) > maxExitFile; s.long {
		s.flush()
		s.to.tail.Write(p)
		return
	}
	s.part = append(s.part, p...)
}

func (s *stream) flush() {
	s.to.tail.Write(s.part)
	s.part = s.part[:0]
}

// end passes on what the streams end with, each on a line of its own.
func (o *output) end() {
	written := false
	for _, s := range o.streams {
		if len(s.part) == 0 {
			continue
		}
		if written {
			o.tail.Write([]byte{'\n'})
		}
		s.flush()
		written = true
	}
}

// exitLine picks the decisive line into r, out of the tail or, when a key was
// issued and nothing in the tail verifies, out of the file in exitDir. It is
// called once the run is over; exitDir is empty where there is no such file.
func (o *output) exitLine(r *Result, run IO, exitDir string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	tail := o.tail.Bytes()
	r.TailCut = o.tail.Cut()
	if run.Key.IsZero() {
		r.Line = run.Parser.Parse(tail)
		return
	}
	r.Line, r.Auth = run.Parser.ParseSigned(tail, run.Key)
	if r.Auth == exit.Verified || exitDir == "" {
		return
	}
	text, err := readExitFile(exitDir)
	if err != nil {
		return
	}
	if line, auth := run.Parser.ParseSigned(text, run.Key); auth == exit.Verified {
		r.Line, r.Auth, r.SecondChannel = line, auth, true
	}
}

// A witness passes on what is written, and remembers that anything was.
type witness struct {
	to  io.Writer
	saw atomic.Bool
}

func (w *witness) Write(p []byte) (int, error) {
	w.saw.Store(true)
	return w.to.Write(p)
}

// A head keeps the first maxRefusal bytes written to it.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxRefusal-len(h.kept))]...)
	return len(p), nil
}
