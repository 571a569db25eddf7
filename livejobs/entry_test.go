package livejobs

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

func ms(n int64) time.Time { return time.UnixMilli(n) }

// published is the row of some jobs.
func published(running, orphans []Running) string {
	jobs, more := Fields(List(running, orphans))
	return jobs + " " + more
}

func TestList(t *testing.T) {
	id128 := strings.Repeat("x", 128)
	for _, c := range []struct {
		name             string
		running, orphans []Running
		want             string
	}{
		{"none", nil, nil, `[] 0`},
		{"whole", []Running{{ID: "j", Project: "p1", Mem: 512, CPU: 50, At: ms(7)}}, nil, `[{"id":"j","p":"p1","m":512,"c":50,"at":7}] 0`},
		{"id alone", []Running{{ID: "j", At: ms(7)}}, nil, `[{"id":"j","p":null,"at":7}] 0`},
		{"orphan", nil, []Running{{ID: "j", At: ms(7)}}, `[{"id":"j","p":null,"at":7,"o":1}] 0`},
		{"every character of an id", []Running{{ID: "aZ09._:-", At: ms(1)}}, nil, `[{"id":"aZ09._:-","p":null,"at":1}] 0`},
		{"longest id", []Running{{ID: id128, At: ms(1)}}, nil, `[{"id":"` + id128 + `","p":null,"at":1}] 0`},
		// printf '%s' 'a b' | sha256sum, and the like
		{"id with a space", []Running{{ID: "a b", At: ms(1)}}, nil, `[{"id":"sha256:c8687a08aa5d6ed2","p":null,"at":1}] 0`},
		{"id with a quote", []Running{{ID: `"`, At: ms(1)}}, nil, `[{"id":"sha256:8a331fdde7032f33","p":null,"at":1}] 0`},
		{"id in UTF-8", []Running{{ID: "ü", At: ms(1)}}, nil, `[{"id":"sha256:607474ca475a9724","p":null,"at":1}] 0`},
		{"no id", []Running{{At: ms(1)}}, nil, `[] 1`},
		{"no instant", []Running{{ID: "j"}}, nil, `[] 1`},
		{"instant 0", []Running{{ID: "j", At: ms(0)}}, nil, `[] 1`},
		{"before 1970", []Running{{ID: "j", At: ms(-1)}}, nil, `[] 1`},
		{"instant that is no safe integer", []Running{{ID: "j", At: ms(jsonval.MaxSafeInt + 1)}}, nil, `[] 1`},
		{"last instant", []Running{{ID: "j", At: ms(jsonval.MaxSafeInt)}}, nil, `[{"id":"j","p":null,"at":9007199254740991}] 0`},
		{"sizes that are none", []Running{{ID: "j", At: ms(1), Mem: -1, CPU: jsonval.MaxSafeInt + 1}}, nil, `[{"id":"j","p":null,"at":1}] 0`},
		{"no project's id", []Running{{ID: "a", Project: "P", At: ms(1)}, {ID: "b", Project: "-p", At: ms(2)}, {ID: "c", Project: strings.Repeat("p", 65), At: ms(3)}}, nil,
			`[{"id":"a","p":null,"at":1},{"id":"b","p":null,"at":2},{"id":"c","p":null,"at":3}] 0`},
		{"running before orphan", []Running{{ID: "j", At: ms(9)}}, []Running{{ID: "j", At: ms(1)}}, `[{"id":"j","p":null,"at":9}] 0`},
		{"the first given of one id", []Running{{ID: "j", Mem: 64, At: ms(9)}, {ID: "j", Mem: 65, At: ms(1)}}, nil, `[{"id":"j","p":null,"m":64,"at":9}] 0`},
		{"one id that both can't name", []Running{{ID: "a b", At: ms(9)}}, []Running{{ID: "a b", At: ms(1)}}, `[{"id":"sha256:c8687a08aa5d6ed2","p":null,"at":9}] 0`},
		{"a left-out one gives way", []Running{{ID: "j"}}, []Running{{ID: "j", At: ms(1)}}, `[{"id":"j","p":null,"at":1,"o":1}] 1`},
		{"oldest first, then id by bytes", []Running{{ID: "b", At: ms(2)}, {ID: "a", At: ms(2)}, {ID: "B", At: ms(2)}, {ID: "z", At: ms(1)}}, nil,
			`[{"id":"z","p":null,"at":1},{"id":"B","p":null,"at":2},{"id":"a","p":null,"at":2},{"id":"b","p":null,"at":2}] 0`},
		// by its own first byte the id with a space would come first
		{"ties by the published id", []Running{{ID: "a b", At: ms(1)}, {ID: "m", At: ms(1)}}, nil, `[{"id":"m","p":null,"at":1},{"id":"sha256:c8687a08aa5d6ed2","p":null,"at":1}] 0`},
	} {
		if diff := cmp.Diff(c.want, published(c.running, c.orphans)); diff != "" {
			t.Errorf("%s: Fields(List(%+v, %+v)) differs (-want +got):\n%s", c.name, c.running, c.orphans, diff)
		}
	}
}

func TestListKeepsTheOldest32(t *testing.T) {
	var running []Running
	for i := range 40 {
		running = append(running, Running{ID: fmt.Sprint("j", i), At: ms(int64(100 - i))})
	}
	running = append(running, Running{})
	list, skipped := List(running, nil)
	if len(list) != 32 || skipped != 9 || list[0].ID != "j39" || list[31].ID != "j8" {
		t.Errorf("List of 40 jobs and one without an id = %d entries, %v to %v, skipped %d", len(list), list[0], list[len(list)-1], skipped)
	}
}

// A row of the longest entries is not longer than what a reader takes.
func TestLongestRowIsRead(t *testing.T) {
	var running []Running
	for i := range 32 {
		running = append(running, Running{ID: fmt.Sprintf("%0128d", i), Project: strings.Repeat("p", 64), Mem: jsonval.MaxSafeInt,
			CPU: jsonval.MaxSafeInt, At: ms(jsonval.MaxSafeInt), Orphan: true})
	}
	want, _ := List(nil, running)
	jobs, _ := Fields(want, 0)
	if got, dropped, ok := Parse(jobs); !ok || dropped != 0 || !cmp.Equal(got, want) {
		t.Errorf("Parse of a row of %d bytes = %d entries, %d dropped, %v, want all 32", len(jobs), len(got), dropped, ok)
	}
}

func TestFieldsOfNone(t *testing.T) {
	if jobs, more := Fields(nil, 3); jobs != "[]" || more != "3" {
		t.Errorf("Fields(nil, 3) = %q, %q, want an empty list and 3", jobs, more)
	}
}

// What a control plane enters, whatever it is, a reader reads back whole.
func FuzzListIsReadBack(f *testing.F) {
	f.Add("j", "p1", int64(512), int64(50), int64(1), true)
	f.Add("a b", "P", int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), false)
	f.Add("\xff\u2028<&>\"", "\x00", int64(0), int64(1), int64(0), true)
	f.Fuzz(func(t *testing.T, id, project string, mem, cpu, at int64, orphan bool) {
		job := Running{ID: id, Project: project, Mem: jobsize.MiB(mem), CPU: jobsize.Centi(cpu), At: ms(at), Orphan: orphan}
		second := job
		second.ID, second.At = id+"2", ms(at/2+1)
		list, skipped := List([]Running{job, second}, []Running{job})
		jobs, more := Fields(list, skipped)
		got, dropped, ok := Parse(jobs)
		if !ok || dropped != 0 || !cmp.Equal(got, list) {
			t.Fatalf("Parse(%q) = %v, %d, %v, want %v", jobs, got, dropped, ok, list)
		}
		if n, ok := ParseMore(more); !ok || n != int64(skipped) {
			t.Fatalf("ParseMore(%q) = %d, %v, want %d", more, n, ok, skipped)
		}
	})
}
