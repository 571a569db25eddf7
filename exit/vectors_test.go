package exit

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectorFiles hold tails and the right answers of an unsigned Parse, made by an
// independent implementation.
var vectorFiles = []string{"exit.jsonl", "exit_edges.jsonl"}

// A vector is one row. Want lists some of the keys of a Line's JSON; where there
// is no decisive line, it lists what a line without any field would give.
type vector struct {
	Tail string         `json:"tail"`
	Want map[string]any `json:"want"`
}

func readVectors(t testing.TB, name string) []vector {
	t.Helper()
	folder := os.Getenv("DISPATCH_VECTORS")
	if folder == "" {
		folder = filepath.Join("..", "testdata", "vectors")
	}
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var vectors []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row map[string]json.RawMessage
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s row %d: %v", name, len(vectors)+1, err)
		}
		if len(row) != 2 || row["tail"] == nil || row["want"] == nil {
			t.Fatalf("%s row %d: want the keys tail and want and no other", name, len(vectors)+1)
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s row %d: %v", name, len(vectors)+1, err)
		}
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(vectors) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return vectors
}

func TestVectors(t *testing.T) {
	for _, name := range vectorFiles {
		t.Run(name, func(t *testing.T) {
			vectors := readVectors(t, name)
			for i, v := range vectors {
				line := Parser{}.Parse([]byte(v.Tail))
				if line == nil {
					line = &Line{}
				}
				got := asMap(t, line)
				for key := range got {
					if _, ok := v.Want[key]; !ok {
						delete(got, key)
					}
				}
				if diff := cmp.Diff(v.Want, got); diff != "" {
					t.Errorf("row %d: Parse(%q) (-want +got):\n%s", i+1, v.Tail, diff)
				}
			}
			t.Logf("%d rows", len(vectors))
		})
	}
}

func asMap(t testing.TB, l *Line) map[string]any {
	t.Helper()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
