package livejobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// maxEntries bounds a published list.
const maxEntries = 32

// A Running is a job that holds a slot of this host.
type Running struct {
	ID      string
	Project string        // "" when it has none
	Mem     jobsize.MiB   // 0 when it is not known
	CPU     jobsize.Centi // 0 when they are not known
	At      time.Time     // when it took its slot
	// Orphan is true for a job that has ended here, and whose container may
	// still run.
	Orphan bool
}

// An Entry is a job as it is published: names, integers and digests only.
type Entry struct {
	ID      string
	Project string        // "" when it is not known
	Mem     jobsize.MiB   // 0 when it is not known
	CPU     jobsize.Centi // 0 when they are not known
	At      time.Time     // to the millisecond
	Orphan  bool
}

// MarshalJSON returns the entry in its published form.
func (e Entry) MarshalJSON() ([]byte, error) {
	published := struct {
		ID      string        `json:"id"`
		Project *string       `json:"p"`
		Mem     jobsize.MiB   `json:"m,omitempty"`
		CPU     jobsize.Centi `json:"c,omitempty"`
		At      int64         `json:"at"`
		Orphan  int           `json:"o,omitempty"`
	}{ID: e.ID, Mem: e.Mem, CPU: e.CPU, At: e.At.UnixMilli()}
	if e.Project != "" {
		published.Project = &e.Project
	}
	if e.Orphan {
		published.Orphan = 1
	}
	return json.Marshal(published)
}

// List returns what is published of the jobs that run and of the orphans: the
// oldest first, those of one instant by their id, at most 32. skipped counts the
// jobs that are not in the list, for want of room or because they have no id or
// no instant. Of two jobs with one published id the first given stays, a running
// one before an orphan; the other is not counted.
func List(running, orphans []Running) (list []Entry, skipped int) {
	list = []Entry{}
	seen := map[string]bool{}
	add := func(jobs []Running, orphan bool) {
		for _, job := range jobs {
			e, ok := entryOf(job, orphan)
			switch {
			case !ok:
				skipped++
			case !seen[e.ID]:
				seen[e.ID] = true
				list = append(list, e)
			}
		}
	}
	add(running, false)
	add(orphans, true)
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	if extra := len(list) - maxEntries; extra > 0 {
		list, skipped = list[:maxEntries:maxEntries], skipped+extra
	}
	return list, skipped
}

// entryOf returns a job as it is published; ok is false when it can't be.
func entryOf(job Running, orphan bool) (e Entry, ok bool) {
	at := job.At.UnixMilli()
	if job.ID == "" || job.At.IsZero() || at <= 0 || at > jsonval.MaxSafeInt {
		return Entry{}, false
	}
	e = Entry{ID: publishedID(job.ID), At: time.UnixMilli(at), Orphan: orphan}
	if isProject(job.Project) {
		e.Project = job.Project
	}
	if job.Mem > 0 && job.Mem <= jsonval.MaxSafeInt {
		e.Mem = job.Mem
	}
	if job.CPU > 0 && job.CPU <= jsonval.MaxSafeInt {
		e.CPU = job.CPU
	}
	return e, true
}

// Fields returns the two fields of a row that publish a list.
func Fields(list []Entry, skipped int) (jobs, more string) {
	if list == nil {
		list = []Entry{}
	}
	text, err := json.Marshal(list)
	if err != nil { // an Entry is strings and integers
		panic(err)
	}
	return string(text), strconv.Itoa(skipped)
}

// publishedID returns an id, or a digest in its place.
func publishedID(id string) string {
	if isID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])[:16]
}

func isID(s string) bool {
	return s != "" && len(s) <= 128 && consistsOf(s, func(c byte) bool { return isAlnum(c) || strings.IndexByte("._:-", c) >= 0 })
}

func isProject(s string) bool {
	isLower := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	return s != "" && len(s) <= 64 && isLower(s[0]) &&
		consistsOf(s, func(c byte) bool { return isLower(c) || strings.IndexByte("._-", c) >= 0 })
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func consistsOf(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
