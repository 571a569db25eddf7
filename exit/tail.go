package exit

// DefaultTailSize is the size of a tail, in bytes, where none is given.
const DefaultTailSize = 64 << 10

// A Tail is an [io.Writer] that keeps the last bytes written to it. It takes
// its memory once and never fails; a write copies at most the tail's size,
// however long it is. The zero Tail keeps DefaultTailSize bytes. A Tail is not
// safe for concurrent use.
type Tail struct {
	ring []byte // length is the size, nil before the first write
	size int    // what ring will be; 0 stands for DefaultTailSize
	next int    // where the next byte goes
	full bool   // every byte of ring is in use
	cut  bool
}

// NewTail returns a Tail of size bytes. A size of 0 or less stands for
// DefaultTailSize.
func NewTail(size int) *Tail {
	return &Tail{size: max(size, 0)}
}

// Write keeps the end of p and, as room allows, of what came before. It returns
// len(p) and nil.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if t.ring == nil {
		if t.size == 0 {
			t.size = DefaultTailSize
		}
		t.ring = make([]byte, t.size)
	}
	if n > t.room() {
		t.cut = true
	}
	if drop := n - len(t.ring); drop > 0 {
		p = p[drop:]
	}
	first := copy(t.ring[t.next:], p)
	if wrapped := copy(t.ring, p[first:]); wrapped > 0 || t.next+first == len(t.ring) {
		t.full = true
		t.next = wrapped
	} else {
		t.next += first
	}
	return n, nil
}

// room is how many bytes can be written before the tail drops one.
func (t *Tail) room() int {
	if t.full {
		return 0
	}
	return len(t.ring) - t.next
}

// Bytes returns a copy of what the tail keeps, oldest byte first.
func (t *Tail) Bytes() []byte {
	if !t.full {
		return append([]byte(nil), t.ring[:t.next]...)
	}
	return append(append(make([]byte, 0, len(t.ring)), t.ring[t.next:]...), t.ring[:t.next]...)
}

// Cut reports whether the tail has dropped older bytes, so that its first line
// may lack its beginning.
func (t *Tail) Cut() bool { return t.cut }
