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
	list = make([]Entry, 0, min(len(items), maxEntries))
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
	var id, at, project, mem, cpu, orphan jsonval.Value
	for key, value := range v.Members { // of a repeated key the last counts
		switch string(key) {
		case "id":
			id = value
		case "at":
			at = value
		case "p":
			project = value
		case "m":
			mem = value
		case "c":
			cpu = value
		case "o":
			orphan = value
		}
	}
	var atOK, projectOK, memOK, cpuOK, orphanOK bool
	e.ID, _ = id.Text()
	e.At, atOK = parseAt(at)
	e.Project, projectOK = parseProject(project)
	e.Mem, memOK = parseSize[jobsize.MiB](mem)
	e.CPU, cpuOK = parseSize[jobsize.Centi](cpu)
	e.Orphan, orphanOK = parseOrphan(orphan)
	if !isID(e.ID) || !atOK || !projectOK || !memOK || !cpuOK || !orphanOK {
		return Entry{}, false
	}
	return e, true
}

func parseAt(v jsonval.Value) (at time.Time, ok bool) {
	ms, ok := v.Int()
	return time.UnixMilli(ms), ok && ms > 0
}

// parseProject reads a project's name; "" for one that is null or absent.
func parseProject(v jsonval.Value) (project string, ok bool) {
	if !v.Exists() || v.IsNull() {
		return "", true
	}
	project, _ = v.Text()
	return project, isProject(project)
}

// parseSize reads a positive integer; 0 for one that is null or absent.
func parseSize[T jobsize.MiB | jobsize.Centi](v jsonval.Value) (size T, ok bool) {
	if !v.Exists() || v.IsNull() {
		return 0, true
	}
	n, ok := v.Int()
	return T(n), ok && n > 0
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
