// Package jsonval reads JSON text as values whose kind is checked at every
// step.
//
// It exists because decoding into Go structs accepts what the formats of this
// module refuse: encoding/json folds the case of keys (also of U+212A and
// U+017F), merges repeated objects, turns null into 0 and refuses 1.0 for an
// integer. Here keys are compared byte for byte, of a repeated key the last
// member counts, whole, and a value of another kind than the one asked for is
// simply absent.
//
// encoding/json alone judges the grammar (text nested deeper than 10 000 levels
// is no JSON); this package only walks text it has accepted. Values are read
// where they stand in that text: nothing is copied before it is asked for.
package jsonval

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// MaxSafeInt is the largest magnitude of an integer that a double holds without
// loss together with its neighbours, 2^53 - 1.
const MaxSafeInt = 1<<53 - 1

// A Value is one JSON value. The zero Value stands for one that is not there;
// every method of it answers "not of that kind".
type Value struct {
	text []byte // valid JSON without space around it
}

// Parse reads text as one JSON value with nothing but white space around it.
// The value refers to text, which must not change afterwards. The error is
// encoding/json's, which names the offset of the fault.
func Parse(text []byte) (Value, error) {
	if !json.Valid(text) {
		var discard json.RawMessage
		return Value{}, json.Unmarshal(text, &discard)
	}
	return Value{bytes.Trim(text, " \t\r\n")}, nil
}

// Exists reports whether the value is there; null is.
func (v Value) Exists() bool { return v.text != nil }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.begins('n') }

// Raw returns the value's JSON text, nil for the zero Value.
func (v Value) Raw() []byte { return v.text }

// Text returns the value as a string, with invalid UTF-8 and lone surrogates
// read as U+FFFD.
func (v Value) Text() (string, bool) {
	text, ok := v.bytes()
	return string(text), ok
}

// bytes returns what Text does, without a copy where it stands in the text.
func (v Value) bytes() ([]byte, bool) {
	if !v.begins('"') {
		return nil, false
	}
	inner := v.text[1 : len(v.text)-1]
	if plain(inner) {
		return inner, true
	}
	var s string
	err := json.Unmarshal(v.text, &s)
	return []byte(s), err == nil
}

// Bool returns the value as a boolean.
func (v Value) Bool() (b, ok bool) {
	return v.begins('t'), v.begins('t') || v.begins('f')
}

// Float returns the value as a finite number.
func (v Value) Float() (float64, bool) {
	if !v.begins('-') && !(len(v.text) > 0 && '0' <= v.text[0] && v.text[0] <= '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.text), 64)
	if err != nil {
		return 0, false // too large for a double
	}
	return f, true
}

// Int returns the value as a safe integer: a whole number of at most
// MaxSafeInt in magnitude, however it is written (1, 1.0 and 10e-1 are one
// number).
func (v Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > MaxSafeInt {
		return 0, false
	}
	return int64(f), true
}

// Count returns the value as a safe integer that is not negative.
func (v Value) Count() (int64, bool) {
	n, ok := v.Int()
	return max(n, 0), ok && n >= 0
}

// List returns the elements of an array.
func (v Value) List() ([]Value, bool) {
	if !v.begins('[') {
		return nil, false
	}
	list := make([]Value, 0, min(commonElements, len(v.text)/2))
	for i := skipSpace(v.text, 1); v.text[i] != ']'; {
		end := skipValue(v.text, i)
		list = append(list, Value{v.text[i:end]})
		i = nextItem(v.text, end)
	}
	return list, true
}

// commonMembers and commonElements are how many an object and an array are
// expected to have; they are no bounds.
const (
	commonMembers  = 8
	commonElements = 32
)

// An Object is the members of a JSON object in the order of the text, repeated
// keys included.
type Object []Member

// A Member is one key of an object, which may lie in the text, and its value.
type Member struct {
	Key   []byte
	Value Value
}

// Object returns the members of an object.
func (v Value) Object() (Object, bool) {
	if !v.begins('{') {
		return nil, false
	}
	o := make(Object, 0, commonMembers)
	for key, value := range v.Members {
		o = append(o, Member{key, value})
	}
	return o, true
}

// Members is an iterator over what Object returns, which keeps none of it. Another
// value than an object has no members.
func (v Value) Members(yield func(key []byte, value Value) bool) {
	if !v.begins('{') {
		return
	}
	for i := skipSpace(v.text, 1); v.text[i] != '}'; {
		end := skipValue(v.text, i)
		key, _ := Value{v.text[i:end]}.bytes()
		i = skipSpace(v.text, skipSpace(v.text, end)+1) // past the colon
		end = skipValue(v.text, i)
		if !yield(key, Value{v.text[i:end]}) {
			return
		}
		i = nextItem(v.text, end)
	}
}

// Get returns the value of the last member with exactly this key, or the zero
// Value.
func (o Object) Get(key string) Value {
	for i := len(o) - 1; i >= 0; i-- {
		if string(o[i].Key) == key {
			return o[i].Value
		}
	}
	return Value{}
}

func (v Value) begins(c byte) bool { return len(v.text) > 0 && v.text[0] == c }

// plain reports whether the inside of a JSON string stands for itself.
func plain(s []byte) bool {
	for _, c := range s {
		if c == '\\' || c >= utf8.RuneSelf {
			return bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s)
		}
	}
	return true
}

// The walkers below rely on valid JSON and so need no bounds of their own: a
// composite always ends in its bracket.

func skipSpace(s []byte, i int) int {
	for s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n' {
		i++
	}
	return i
}

// nextItem returns where the next item of a composite begins, or where its
// closing bracket stands, given the end of an item.
func nextItem(s []byte, i int) int {
	i = skipSpace(s, i)
	if s[i] == ',' {
		i = skipSpace(s, i+1)
	}
	return i
}

// skipValue returns the end of the value that begins at i.
func skipValue(s []byte, i int) int {
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipComposite(s, i)
	}
	for i < len(s) && !endsScalar(s[i]) {
		i++
	}
	return i
}

// endsScalar reports whether a byte can stand behind a number, true, false or
// null.
func endsScalar(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

func skipString(s []byte, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipComposite(s []byte, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = skipString(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}
