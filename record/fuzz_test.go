package record

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func FuzzRecordRead(f *testing.F) {
	for _, row := range readVectors(f, "verdict", "record", "q", "verdict", "ofThisJob", "version", "readable") {
		f.Add([]byte(row["record"]))
	}
	whole := Build(sampleRun("j", 1))
	line, _ := whole.line()
	f.Add(line)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text)
		if err != nil {
			if !reflect.DeepEqual(r, Record{}) {
				t.Fatalf("Parse(%q) gave an error and %+v", text, r)
			}
			return
		}
		// What was rebuilt once stays as it is.
		once, err := r.line()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(once)
		if err != nil {
			t.Fatalf("Parse(%q) does not read back: %v", text, err)
		}
		twice, _ := back.line()
		if string(once) != string(twice) {
			t.Fatalf("rebuilt %q, then %q", once, twice)
		}
		EarlierFrom(&r)
		Verdict(&r, Question{JobID: r.JobID})
	})
}

func FuzzStoreName(f *testing.F) {
	for _, id := range []string{"a:b", "../x", "..", "", "ü", strings.Repeat("x", 300), "repeat:n:1", "a\x00b", "/etc/passwd"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name, err := FileName(id)
		if err != nil {
			return
		}
		if len(name) > maxNameLen || !filepath.IsLocal(name+jsonExt) || name == "." || name != filepath.Base(name) || !matches(name, maxNameLen, isNameByte, isNameByte) {
			t.Fatalf("FileName(%q) = %q", id, name)
		}
	})
}
