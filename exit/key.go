package exit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"sync"

	"github.com/edgehero/dispatch/internal/jsonval"
)

const (
	// anchor is how a line that can be signed begins.
	anchor = `{"event":"exit"`

	// What Sign puts in place of the line's final brace, around the MAC.
	sealOpen  = `,"auth":"`
	sealClose = `"}`
	macLen    = 2 * sha256.Size // in lower hex
	sealLen   = len(sealOpen) + macLen + len(sealClose)

	keyBytes = 32
	keyLen   = 2 * keyBytes // in lower hex, as it travels

	// maxSigned is the most bytes of a signed line, so that a tail of the
	// default size can hold it.
	maxSigned = DefaultTailSize
)

// A Key signs and verifies the exit lines of one attempt of one job. Make a
// fresh one for each attempt and hand it to the container on standard input as
// one line; never put it in arguments, the environment or a log.
//
// Every way to print a Key, or a struct that holds one, gives a fixed text or an
// address; [Key.Reveal] alone gives the secret away.
// The zero Key is no key: it signs nothing and verifies nothing. A Key may be
// used by several goroutines at once.
type Key struct {
	secret *secret
}

// secret is what a Key hides. The MAC key is the text as it travels, not the
// bytes that the text stands for.
type secret struct {
	// text is a function because a pointer alone does not hide it: fmt follows
	// the pointer in an unexported field when the verb does not fit, as in
	// Printf("%s", struct{ key Key }{k}), and so do dumpers that use reflection.
	text func() [keyLen]byte
	// macs holds *mac values that are keyed already: keying one costs as much as
	// hashing 128 bytes.
	macs sync.Pool
}

// A mac computes MACs, one after another.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte // here so that it takes no memory for each MAC
}

// NewKey returns a fresh random key.
func NewKey() Key {
	var raw [keyBytes]byte
	rand.Read(raw[:]) // never fails: the runtime ends the program instead
	var text [keyLen]byte
	hex.Encode(text[:], raw[:])
	return newKey(text)
}

// ParseKey reads a key as [Key.Reveal] wrote it: 64 lower-case hex characters
// and nothing around them. The error does not repeat the text.
func ParseKey(text string) (Key, error) {
	if len(text) != keyLen || !isLowerHex([]byte(text)) {
		return Key{}, fmt.Errorf("parse exit key: want %d lower-case hex characters and nothing else (got %d bytes)", keyLen, len(text))
	}
	return newKey([keyLen]byte([]byte(text))), nil
}

func newKey(text [keyLen]byte) Key {
	s := &secret{text: func() [keyLen]byte { return text }}
	s.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, text[:])} }
	return Key{s}
}

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k.secret == nil }

// Reveal returns the key as the 64 characters that travel to the container, ""
// for the zero Key.
func (k Key) Reveal() string {
	if k.IsZero() {
		return ""
	}
	text := k.secret.text()
	return string(text[:])
}

// Sign returns the line with its signature, without a newline. The line must be
// one complete JSON object that begins with {"event":"exit" and holds those
// bytes nowhere else, without a newline, without an auth key of its own, and of
// at most 64 KiB once signed. Anything else is an error, as is the zero Key:
// what Sign returns, [Key.Verify] takes.
func (k Key) Sign(line []byte) ([]byte, error) {
	if k.IsZero() {
		return nil, errors.New("sign exit line: the zero Key signs nothing; use NewKey or ParseKey")
	}
	if fault := unsignable(line); fault != "" {
		return nil, fmt.Errorf("sign exit line of %d bytes: %s", len(line), fault)
	}
	body := line[:len(line)-1]
	signed := make([]byte, 0, len(body)+sealLen)
	signed = append(signed, body...)
	signed = append(signed, sealOpen...)
	signed = k.appendMAC(signed, body)
	return append(signed, sealClose...), nil
}

// unsignable says why a line can't be signed, "" when it can.
func unsignable(line []byte) string {
	switch {
	case !bytes.HasPrefix(line, []byte(anchor)):
		return "it does not begin with " + anchor
	case lastAnchor(line) != 0:
		return "it holds " + anchor + " a second time"
	case bytes.IndexByte(line, '\n') >= 0:
		return "it holds a newline"
	case line[len(line)-1] != '}':
		return "it does not end in }"
	case len(line)-1+sealLen > maxSigned:
		return fmt.Sprintf("signed it would be longer than %d bytes", maxSigned)
	}
	v, err := jsonval.Parse(line)
	if err != nil {
		return "it is not one JSON object"
	}
	if o, _ := v.Object(); o.Get("auth").Exists() {
		return "it has an auth key of its own"
	}
	return ""
}

// Verify checks the signature of a line, with or without space and foreign text
// before the signed object. It returns the object as it was before it was
// signed, in memory of its own, or nil and false. The zero Key verifies nothing.
//
// Only the returned bytes may be read: what stood around them is not signed.
func (k Key) Verify(line []byte) (unsigned []byte, ok bool) {
	body, ok := k.check(line)
	if !ok {
		return nil, false
	}
	// In one step, with the byte after the body, because make and two appends
	// would clear the memory first.
	unsigned = append([]byte(nil), body[:len(body)+1]...)
	unsigned[len(body)] = '}'
	return unsigned, true
}

// check checks the signature of a line. It returns the signed object without
// its final brace, as it stands in the line and followed by its signature.
func (k Key) check(line []byte) (body []byte, ok bool) {
	body, given := splitSigned(trim(line))
	if k.IsZero() || body == nil {
		return nil, false
	}
	var want [macLen]byte
	return body, hmac.Equal(k.appendMAC(want[:0], body), given)
}

// splitSigned takes a trimmed line that ends like a signed one apart: the
// signed object without its final brace, and the MAC. It returns nil for any
// other line.
func splitSigned(line []byte) (body, mac []byte) {
	if !endsSigned(line) {
		return nil, nil
	}
	body = line[:len(line)-sealLen]
	start := lastAnchor(body)
	if start < 0 {
		return nil, nil
	}
	return body[start:], line[len(line)-len(sealClose)-macLen : len(line)-len(sealClose)]
}

// endsSigned reports whether a trimmed line ends in the text of a signature.
func endsSigned(line []byte) bool {
	if len(line) < sealLen {
		return false
	}
	seal := line[len(line)-sealLen:]
	mac := seal[len(sealOpen) : len(sealOpen)+macLen]
	return bytes.HasPrefix(seal, []byte(sealOpen)) && bytes.HasSuffix(seal, []byte(sealClose)) && isLowerHex(mac)
}

// appendMAC appends the MAC of body and a closing brace in lower hex.
func (k Key) appendMAC(dst, body []byte) []byte {
	m := k.secret.macs.Get().(*mac)
	m.Reset()
	m.Write(body)
	m.Write(closingBrace)
	dst = hex.AppendEncode(dst, m.Sum(m.sum[:0]))
	k.secret.macs.Put(m)
	return dst
}

var closingBrace = []byte{'}'}

// lastAnchor returns where the last anchor of a line begins, -1 without one.
// It searches forward: bytes.LastIndex hashes every byte and would take longer
// than the MAC.
func lastAnchor(line []byte) int {
	last := -1
	for {
		i := bytes.Index(line[last+1:], []byte(anchor))
		if i < 0 {
			return last
		}
		last += 1 + i
	}
}

// trim cuts off the white space that may stand around a line.
func trim(line []byte) []byte { return bytes.Trim(line, " \t\r") }

func isLowerHex(s []byte) bool {
	for _, c := range s {
		if (c < '0' || '9' < c) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return true
}

const redacted = "exit.Key(redacted)"

// String returns a fixed text; see [Key.Reveal].
func (k Key) String() string { return redacted }

// Format writes a fixed text for every verb; it implements [fmt.Formatter].
func (k Key) Format(f fmt.State, _ rune) { f.Write([]byte(redacted)) }

// LogValue returns a fixed text; it implements [slog.LogValuer].
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns a fixed text, which no key parses from; it implements
// [encoding.TextMarshaler], and so covers JSON and XML.
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
