package exit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		size   int
		writes []string
		want   string
		cut    bool
	}{
		{4, nil, "", false},
		{4, []string{""}, "", false},
		{4, []string{"ab"}, "ab", false},
		{4, []string{"ab", "cd"}, "abcd", false},
		{4, []string{"abcd", ""}, "abcd", false},
		{4, []string{"abcd", "e"}, "bcde", true},
		{4, []string{"abc", "def"}, "cdef", true},
		{4, []string{"abcdefgh"}, "efgh", true},
		{4, []string{"abcde", "f"}, "cdef", true},
		{4, []string{"ab", "cdefgh"}, "efgh", true},
		{4, []string{"ab", "cdefg", "h"}, "efgh", true},
		{1, []string{"a", "b"}, "b", true},
		{6, []string{"a\xe2", "\x82", "\xac"}, "a€", false},
	} {
		tail := NewTail(tt.size)
		for _, w := range tt.writes {
			if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("Write(%q) = %d, %v, want %d, nil", w, n, err, len(w))
			}
		}
		if got := string(tail.Bytes()); got != tt.want || tail.Cut() != tt.cut {
			t.Errorf("tail of %d after %q = %q, cut %v, want %q, %v", tt.size, tt.writes, got, tail.Cut(), tt.want, tt.cut)
		}
	}
}

// Whatever the chunks, the tail is the end of all that was written.
func TestTailIsTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := 1 + random.IntN(40)
		tail := NewTail(size)
		var all []byte
		for range random.IntN(20) {
			chunk := make([]byte, random.IntN(90))
			for i := range chunk {
				chunk[i] = byte(random.Uint32())
			}
			all = append(all, chunk...)
			tail.Write(chunk)
			clear(chunk) // the tail must hold its own bytes
			if want := all[max(len(all)-size, 0):]; !bytes.Equal(tail.Bytes(), want) {
				t.Fatalf("tail of %d = %x, want %x", size, tail.Bytes(), want)
			}
			if tail.Cut() != (len(all) > size) {
				t.Fatalf("tail of %d after %d bytes: Cut = %v", size, len(all), tail.Cut())
			}
		}
	}
}

func TestTailDefault(t *testing.T) {
	for name, tail := range map[string]*Tail{"zero": {}, "NewTail(0)": NewTail(0), "NewTail(-1)": NewTail(-1)} {
		if got := tail.Bytes(); len(got) != 0 {
			t.Errorf("%s: Bytes before the first write = %q", name, got)
		}
		tail.Write(make([]byte, 1<<20))
		if got := len(tail.Bytes()); got != DefaultTailSize {
			t.Errorf("%s keeps %d bytes, want %d", name, got, DefaultTailSize)
		}
	}
}

func TestTailAllocatesOnce(t *testing.T) {
	tail := NewTail(0)
	chunk := make([]byte, 100_000)
	tail.Write(chunk[:1])
	for _, size := range []int{1, 1000, 32 << 10, 100_000} {
		if n := testing.AllocsPerRun(100, func() { tail.Write(chunk[:size]) }); n != 0 {
			t.Errorf("Write of %d bytes allocates %v times, want 0", size, n)
		}
	}
	if cap(tail.ring) != DefaultTailSize {
		t.Errorf("the tail has grown to %d bytes, want %d", cap(tail.ring), DefaultTailSize)
	}
}

// The bytes that Bytes gave stay as they were, and a character that two writes
// split is whole.
func TestTailBytesAreACopy(t *testing.T) {
	tail := NewTail(0)
	for _, b := range []byte(strings.Repeat("€", 30_000)) {
		tail.Write([]byte{b})
	}
	got := tail.Bytes()
	if !utf8.Valid(got[1:]) { // 65536 = 1 + 3 * 21845
		t.Error("a split character is not whole")
	}
	before := bytes.Clone(got)
	tail.Write([]byte("xxxxxxxx"))
	if !bytes.Equal(got, before) {
		t.Error("Bytes changed with a later Write")
	}
}
