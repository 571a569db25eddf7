package record

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A seed for each block is a record that holds it, so that the fuzzer need not
// guess the names of keys.
func FuzzRecordRead(f *testing.F) {
	for _, name := range []string{"verdict", "verdict_edges"} {
		for _, row := range readVectors(f, name, "record", "q", "verdict", "ofThisJob", "version", "readable") {
			f.Add([]byte(row["record"]))
		}
	}
	for _, row := range readVectors(f, "earlier_from", "previous", "want") {
		f.Add([]byte(row["previous"]))
	}
	for name, key := range map[string]string{
		"rec_approval": "approval", "rec_bundle_edges": "bundle", "rec_capacity": "capacity", "rec_checkpoints": "checkpoints",
		"rec_earlier": "earlier", "rec_host_budget": "hostBudget", "rec_progress": "progress", "rec_recovered": "recovered",
		"rec_steered": "steered",
	} {
		for _, row := range readVectors(f, name, "in", "want") {
			f.Add(fmt.Appendf(nil, `{"jobId":"j",%q:%s}`, key, row["in"]))
		}
	}
	for _, row := range readVectors(f, "rec_openshell_edges", "in", "backend", "want") {
		f.Add(fmt.Appendf(nil, `{"jobId":"j","backend":%s,"openshell":%s}`, row["backend"], row["in"]))
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
	for _, row := range readVectors(f, "queued_at", "job", "queuedAt", "jobCreatedAt", "scheduledFor") {
		var job struct{ ID any }
		if err := json.Unmarshal(row["job"], &job); err != nil {
			f.Fatal(err)
		}
		if id, ok := job.ID.(string); ok {
			f.Add(id)
		}
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
