package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/google/go-cmp/cmp"
)

// A row is one line of a vector file: every key as it stands there.
type row map[string]json.RawMessage

func readVectors(t testing.TB, name string, keys ...string) []row {
	t.Helper()
	folder := os.Getenv("DISPATCH_VECTORS")
	if folder == "" {
		folder = filepath.Join("..", "testdata", "vectors")
	}
	f, err := os.Open(filepath.Join(folder, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s row %d: %v", name, len(rows)+1, err)
		}
		for _, key := range keys {
			if _, ok := r[key]; !ok || len(r) != len(keys) {
				t.Fatalf("%s row %d: want exactly the keys %v", name, len(rows)+1, keys)
			}
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s is empty", name)
	}
	t.Logf("%s: %d rows", name, len(rows))
	return rows
}

// sameJSON compares a value's JSON form to a wanted one.
func sameJSON(t *testing.T, n int, got any, want json.RawMessage) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := errors.Join(json.Unmarshal(text, &g), json.Unmarshal(want, &w)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("row %d (-want +got):\n%s", n+1, diff)
	}
}

func value(t *testing.T, raw json.RawMessage) jsonval.Value {
	t.Helper()
	v, err := jsonval.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBlockVectors(t *testing.T) {
	for name, read := range map[string]func(jsonval.Value) any{
		"rec_approval":     func(v jsonval.Value) any { return readApproval(v) },
		"rec_bundle":       func(v jsonval.Value) any { return readBundle(v) },
		"rec_bundle_edges": func(v jsonval.Value) any { return readBundle(v) },
		"rec_capacity":     func(v jsonval.Value) any { return readCapacity(v) },
		"rec_checkpoints":  func(v jsonval.Value) any { return readCheckpoints(v) },
		"rec_earlier":      func(v jsonval.Value) any { return readEarlier(v) },
		"rec_host_budget":  func(v jsonval.Value) any { return readHostBudget(v) },
		"rec_progress":     func(v jsonval.Value) any { return readProgress(v) },
		"rec_recovered":    func(v jsonval.Value) any { return readRecovered(v) },
		"rec_steered":      func(v jsonval.Value) any { return readSteered(v) },
		"rec_recovery_from_progress": func(v jsonval.Value) any {
			return RecoveryFromProgress(v.Raw())
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, r := range readVectors(t, name, "in", "want") {
				sameJSON(t, i, read(value(t, r["in"])), r["want"])
			}
		})
	}
	for _, name := range []string{"rec_openshell", "rec_openshell_edges"} {
		t.Run(name, func(t *testing.T) {
			for i, r := range readVectors(t, name, "in", "backend", "want") {
				backend, _ := value(t, r["backend"]).Text()
				sameJSON(t, i, readOpenShell(value(t, r["in"]), exit.Word(backend)), r["want"])
			}
		})
	}
}

// parsed reads a vector's record: nil for none, and the verdict of one that
// can't be read.
func parsed(t *testing.T, raw json.RawMessage) (*Record, Why) {
	t.Helper()
	if value(t, raw).IsNull() {
		return nil, Absent
	}
	r, err := Parse(raw)
	if err != nil {
		return nil, Unreadable
	}
	return &r, Settles
}

func TestVerdictVectors(t *testing.T) {
	for _, name := range []string{"verdict", "verdict_edges"} {
		t.Run(name, func(t *testing.T) {
			for i, row := range readVectors(t, name, "record", "q", "verdict", "ofThisJob", "version", "readable") {
				o, _ := value(t, row["q"]).Object()
				var q Question
				q.JobID, _ = o.Get("jobId").Text()
				attempt, _ := o.Get("attempt").Int()
				q.Attempt = int(attempt)
				if since, ok := o.Get("since").Int(); ok {
					q.Created = time.UnixMilli(since)
				}
				r, got := parsed(t, row["record"])
				if got != Unreadable {
					got = Verdict(r, q)
				}
				want, _ := value(t, row["verdict"]).Text()
				if got != Why(want) {
					t.Errorf("row %d: Verdict(%s) = %q, want %q", i+1, row["record"], got, want)
				}
				wantOf, _ := value(t, row["ofThisJob"]).Bool()
				if got := OfThisJob(r, q); got != wantOf {
					t.Errorf("row %d: OfThisJob(%s) = %v, want %v", i+1, row["record"], got, wantOf)
				}
				if r == nil {
					continue
				}
				version, _ := value(t, row["version"]).Int()
				readable, _ := value(t, row["readable"]).Bool()
				if r.V != version || r.Readable() != readable {
					t.Errorf("row %d: version %d, readable %v, want %d, %v", i+1, r.V, r.Readable(), version, readable)
				}
			}
		})
	}
}

func TestNewerVectors(t *testing.T) {
	for i, row := range readVectors(t, "newer", "a", "b", "want") {
		a, _ := parsed(t, row["a"])
		b, _ := parsed(t, row["b"])
		want, _ := value(t, row["want"]).Text()
		got := "none"
		switch n := Newer(a, b); {
		case n == nil:
		case n == a:
			got = "a"
		case n == b:
			got = "b"
		}
		if got != want {
			t.Errorf("row %d: Newer = %q, want %q", i+1, got, want)
		}
	}
}

func TestEarlierFromVectors(t *testing.T) {
	for i, row := range readVectors(t, "earlier_from", "previous", "want") {
		previous, _ := parsed(t, row["previous"])
		sameJSON(t, i, EarlierFrom(previous), row["want"])
	}
}

func TestQueuedAtVectors(t *testing.T) {
	for i, row := range readVectors(t, "queued_at", "job", "queuedAt", "jobCreatedAt", "scheduledFor") {
		o, _ := value(t, row["job"]).Object()
		var j Job
		j.ID, _ = o.Get("id").Text()
		if ms, ok := o.Get("timestamp").Int(); ok && ms >= 0 && ms <= maxMillis {
			j.Created = time.UnixMilli(ms)
		}
		opts, _ := o.Get("opts").Object()
		delay := opts.Get("delay")
		known := true
		if f, ok := delay.Float(); ok && f*1e6 < math.MaxInt64 {
			j.Delay = time.Duration(f * 1e6)
		} else if delay.Exists() && !delay.IsNull() {
			known = false // a delay that a Duration can't say
		}
		n, _ := o.Get("attemptsMade").Int()
		j.Attempts = int(n)
		n, _ = o.Get("stalledCounter").Int()
		j.Stalls = int(n)
		data, _ := o.Get("data").Object()
		_, j.Waits = data.Get("waitFor").Object()
		if _, slot := ScheduledFor(j.ID); known || slot {
			sameJSON(t, i, QueuedAt(j), row["queuedAt"])
		}
		sameJSON(t, i, At(j.Created), row["jobCreatedAt"])
		var scheduledFor *int64
		if slot, ok := ScheduledFor(j.ID); ok {
			scheduledFor = ptr(slot.UnixMilli())
		}
		sameJSON(t, i, scheduledFor, row["scheduledFor"])
	}
}
