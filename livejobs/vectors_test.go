package livejobs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// eachVector tests every row of a vector file, as the members of an object.
func eachVector(t testing.TB, name string, test func(row jsonval.Object)) {
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
		v, err := jsonval.Parse(line)
		row, ok := v.Object()
		if err != nil || !ok {
			t.Fatalf("%s, row %d: not a JSON object: %v", name, rows+1, err)
		}
		test(row)
		rows++
	}
	if rows == 0 {
		t.Fatalf("%s holds no row", name)
	}
	t.Logf("%s: %d rows", name, rows)
}

// runningOf decodes a list of jobs as the reference was given them; a value that
// a Running can't hold is the zero value.
func runningOf(v jsonval.Value) (jobs []Running) {
	list, _ := v.List()
	for _, item := range list {
		o, _ := item.Object()
		var job Running
		job.Orphan, _ = o.Get("orphan").Bool()
		job.ID, _ = o.Get("id").Text()
		job.Project, _ = o.Get("project").Text()
		mem, _ := o.Get("memMiB").Int()
		cpu, _ := o.Get("cpuCenti").Int()
		job.Mem, job.CPU = jobsize.MiB(mem), jobsize.Centi(cpu)
		if at, ok := o.Get("at").Int(); ok {
			job.At = time.UnixMilli(at)
		}
		jobs = append(jobs, job)
	}
	return jobs
}

func TestListVectors(t *testing.T) {
	eachVector(t, "live_jobs.jsonl", func(row jsonval.Object) {
		// The reference is given all that holds budget, and takes the orphans.
		orphans := slices.DeleteFunc(runningOf(row.Get("budgetEntries")), func(job Running) bool { return !job.Orphan })
		jobs, more := Fields(List(runningOf(row.Get("running")), orphans))
		want, _ := row.Get("want").Object()
		wantJobs, _ := want.Get("jobs").Text()
		wantMore, ok := want.Get("jobsMore").Text()
		if !ok {
			wantMore = string(want.Get("jobsMore").Raw())
		}
		if jobs != wantJobs || more != wantMore {
			t.Errorf("Fields(List(%s)) differs (-want +got):\n%s", row.Get("running").Raw(),
				cmp.Diff([]string{wantJobs, wantMore}, []string{jobs, more}))
		}
	})
}

func TestParseVectors(t *testing.T) {
	for _, name := range []string{"live_jobs_parse.jsonl", "live_jobs_parse_edges.jsonl"} {
		eachVector(t, name, func(row jsonval.Object) {
			raw, _ := row.Get("raw").Text()
			list, dropped, ok := Parse(raw)
			got, err := json.Marshal(map[string]any{"jobs": readForm(list, ok), "dropped": dropped})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, row.Get("want").Raw()), decode(t, got)); diff != "" {
				t.Errorf("Parse(%q) differs (-want +got):\n%s", raw, diff)
			}
		})
	}
}

// readForm is the form in which the reference gives what it read.
func readForm(list []Entry, ok bool) []map[string]any {
	if !ok {
		return nil
	}
	form := []map[string]any{}
	orNull := func(v any, isZero bool) any {
		if isZero {
			return nil
		}
		return v
	}
	for _, e := range list {
		form = append(form, map[string]any{
			"id": e.ID, "p": orNull(e.Project, e.Project == ""), "m": orNull(e.Mem, e.Mem == 0),
			"c": orNull(e.CPU, e.CPU == 0), "at": e.At.UnixMilli(), "o": e.Orphan,
		})
	}
	return form
}

func decode(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseMoreVectors(t *testing.T) {
	eachVector(t, "jobs_more.jsonl", func(row jsonval.Object) {
		raw, _ := row.Get("raw").Text()
		want, wantOK := row.Get("want").Int()
		if got, ok := ParseMore(raw); got != want || ok != wantOK {
			t.Errorf("ParseMore(%q) = %d, %v, want %d, %v", raw, got, ok, want, wantOK)
		}
	})
}
