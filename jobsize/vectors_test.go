package jobsize

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eachVector decodes every row of a vector file and tests it.
func eachVector[Row any](t *testing.T, name string, test func(Row)) {
	t.Helper()
	dir := os.Getenv("DISPATCH_VECTORS")
	if dir == "" {
		dir = filepath.Join("..", "testdata", "vectors")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range bytes.Lines(text) {
		var row Row
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s, row %d: %v", name, rows+1, err)
		}
		test(row)
		rows++
	}
	if rows == 0 {
		t.Fatalf("%s holds no row", name)
	}
	t.Logf("%s: %d rows", name, rows)
}

func TestWeightsVectors(t *testing.T) {
	type row struct {
		Shares int64
		Want   []int64
	}
	eachVector(t, "cpu_weight.jsonl", func(r row) {
		if len(r.Want) == 0 {
			r.Want = nil
		}
		if got := Weights(r.Shares); !cmp.Equal(got, r.Want) {
			t.Errorf("Weights(%d) = %v, want %v", r.Shares, got, r.Want)
		}
	})
}

func TestPeakReachedLimitVectors(t *testing.T) {
	type row struct {
		MemPeak, Limit *json.Number
		Want           bool
	}
	number := func(n *json.Number) int64 {
		if n == nil {
			return 0
		}
		i, _ := n.Int64() // 0 for a fraction
		return i
	}
	eachVector(t, "peak_reached_limit.jsonl", func(r row) {
		if got := PeakReachedLimit(number(r.MemPeak), number(r.Limit)); got != r.Want {
			t.Errorf("PeakReachedLimit(%v, %v) = %v, want %v", r.MemPeak, r.Limit, got, r.Want)
		}
	})
}
