package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/edgehero/dispatch/record"
)

// printJSON prints a result as indented JSON.
func (p *program) printJSON(v any) error { return writeJSON(p.stdout, v) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printable makes a job's output safe for a terminal: control characters, which
// could move its cursor or change its title, become U+FFFD.
func printable(line []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, string(line))
}

// duration returns how long a run took.
func duration(rec record.Record) (time.Duration, bool) {
	started, ok := rec.StartedAt.Time()
	ended, endedOK := rec.EndedAt.Time()
	return ended.Sub(started), ok && endedOK
}

// bytesText returns a number of bytes in a unit that leaves few digits.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
