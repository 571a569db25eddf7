package livejobs

import (
	"strconv"
	"time"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// maxRow bounds the text of a row's jobs, in bytes.
const maxRow = 16384

// Parse reads the jobs field of a row, which is another host's text and may be
// anything. It returns the first 32 entries that fit, in the order of the row,
// and how many others there are. ok is false, with nothing dropped, for a text
// that is longer than 16 384 bytes or no JSON array.
func Parse(raw string) (list []Entry, dropped int, ok bool) {
	if len(raw) > maxRow {
		return nil, 0, false
	}
	v, err := jsonval.Parse([]byte(raw))
	if err != nil {
		return nil, 0, false
	}
	items, ok := v.List()
	if !ok {
		return nil, 0, false
	}
	list = []Entry{}
	for _, item := range items {
		e, fits := parseEntry(item)
		if !fits || len(list) == maxEntries {
			dropped++
			continue
		}
		list = append(list, e)
	}
	return list, dropped, true
}

func parseEntry(v jsonval.Value) (e Entry, ok bool) {
	o, ok := v.Object()
	if !ok {
		return Entry{}, false
	}
	at, atOK := o.Get("at").Int()
	e.ID, _ = o.Get("id").Text()
	if !isID(e.ID) || !atOK || at <= 0 {
		return Entry{}, false
	}
	e.At = time.UnixMilli(at)
	if p := o.Get("p"); p.Exists() && !p.IsNull() {
		if e.Project, _ = p.Text(); !isProject(e.Project) {
			return Entry{}, false
		}
	}
	mem, memOK := parseSize(o.Get("m"))
	cpu, cpuOK := parseSize(o.Get("c"))
	orphan, orphanOK := parseOrphan(o.Get("o"))
	if !memOK || !cpuOK || !orphanOK {
		return Entry{}, false
	}
	e.Mem, e.CPU, e.Orphan = jobsize.MiB(mem), jobsize.Centi(cpu), orphan
	return e, true
}

// parseSize reads a positive integer; 0 for one that is null or absent.
func parseSize(v jsonval.Value) (n int64, ok bool) {
	if !v.Exists() || v.IsNull() {
		return 0, true
	}
	n, ok = v.Int()
	return n, ok && n > 0
}

// parseOrphan reads 1, true or false; absent is false.
func parseOrphan(v jsonval.Value) (orphan, ok bool) {
	if !v.Exists() {
		return false, true
	}
	if orphan, ok = v.Bool(); ok {
		return orphan, true
	}
	n, ok := v.Int()
	return true, ok && n == 1
}

// ParseMore reads the jobsMore field of a row, 1 to 9 digits. ok is false for any
// other text: the number is then not known. A reader adds what Parse dropped.
func ParseMore(raw string) (n int64, ok bool) {
	if raw == "" || len(raw) > 9 || !consistsOf(raw, func(c byte) bool { return '0' <= c && c <= '9' }) {
		return 0, false
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	return n, err == nil
}
