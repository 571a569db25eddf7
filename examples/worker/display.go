package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edgehero/dispatch/jobsize"
)

// A jobLine is what a terminal shows of one job that runs.
type jobLine struct {
	ID      string
	State   jobState
	Elapsed time.Duration
	Memory  int64       // bytes that its cgroup holds now, -1 when not known
	Size    jobsize.MiB // 0 when not known
	Last    string      // its last line of output
}

// A jobState is how a job on the display is doing.
type jobState string

const (
	stateRunning  jobState = "running"
	stateStopping jobState = "stopping" // the worker takes no more jobs and stops what runs
	stateOrphan   jobState = "orphan"   // it ended here, and its container may still run
)

// A screen is how much room there is, and whether it has colours.
type screen struct {
	columns, rows int
	color         bool
}

// widestID is as much of an id as the lines give room to.
const widestID = 32

// layOut returns the lines that show the jobs, each shorter than the screen is
// wide by at least a column, and fewer than it has rows. A line that does not fit
// is cut, jobs without a line of their own are counted.
func layOut(jobs []jobLine, s screen) []string {
	room := max(s.rows-1, 1)
	shown := jobs
	if len(jobs) > room {
		shown = jobs[:room-1]
	}
	width := 0
	for _, j := range shown {
		width = max(width, min(utf8.RuneCountInString(j.ID), widestID))
	}
	var lines []string
	for _, j := range shown {
		lines = append(lines, j.render(width, s))
	}
	if hidden := len(jobs) - len(shown); hidden > 0 {
		lines = append(lines, cut(fmt.Sprintf("and %d more", hidden), s.columns-1))
	}
	return lines
}

// render returns the line of a job. Colours are put around whole parts after the
// cut, so that none is left on.
func (j jobLine) render(idWidth int, s screen) string {
	id := cut(onOneLine(j.ID), idWidth)
	parts := []struct{ text, color string }{
		{fmt.Sprintf("%-*s  ", idWidth, id), "1"},
		{fmt.Sprintf("%-8s", j.State), stateColors[j.State]},
		{fmt.Sprintf("  %8s  %15s  ", elapsedText(j.Elapsed), memoryText(j.Memory, j.Size)), ""},
		{onOneLine(j.Last), "2"},
	}
	var line strings.Builder
	left := s.columns - 1
	for _, part := range parts {
		text := cut(part.text, left)
		left -= utf8.RuneCountInString(text)
		if s.color && part.color != "" && text != "" {
			text = "\x1b[" + part.color + "m" + text + "\x1b[0m"
		}
		line.WriteString(text)
	}
	if !s.color {
		return strings.TrimRight(line.String(), " ")
	}
	return line.String()
}

// stateColors are SGR parameters: green, yellow and red.
var stateColors = map[jobState]string{stateRunning: "32", stateStopping: "33", stateOrphan: "31"}

// onOneLine makes text safe for a terminal and as wide as it has runes.
func onOneLine(text string) string {
	return printable([]byte(strings.ReplaceAll(text, "\t", " ")))
}

// cut returns at most n runes of a text, the last of them an ellipsis where some
// are missing.
func cut(text string, n int) string {
	switch {
	case n <= 0:
		return ""
	case utf8.RuneCountInString(text) <= n:
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

func elapsedText(d time.Duration) string {
	d = max(d, 0)
	return d.Truncate(time.Second).String()
}

// memoryText is memory now against the size, such as 12.5 MiB/512m; - is what is
// not known.
func memoryText(now int64, size jobsize.MiB) string {
	text := "-"
	if now >= 0 {
		text = bytesText(now)
	}
	if size == 0 {
		return text + "/-"
	}
	return text + "/" + size.String()
}

// A frame is the lines that stand at the bottom of a terminal, with the cursor
// below them. What is written goes above.
type frame struct {
	lengths []int // of the lines that stand there, in runes
}

// replace returns what a terminal has to be sent so that text stands above the
// frame, which then shows the lines. The cursor is at the start of the row below
// the frame before and after. Lines never wrap, also where a rune takes two
// columns; those that stood there may have wrapped when the window became
// narrower, and take more rows then.
func (f *frame) replace(above string, lines []string, columns int) string {
	var out strings.Builder
	rows := 0
	for _, length := range f.lengths {
		rows += max(1, (length+columns-1)/max(columns, 1))
	}
	if rows > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", rows)
	}
	out.WriteString(above)
	f.lengths = f.lengths[:0]
	if len(lines) == 0 {
		return out.String()
	}
	out.WriteString("\x1b[?7l")
	for _, line := range lines {
		out.WriteString(line + "\r\n")
		f.lengths = append(f.lengths, visibleLength(line))
	}
	out.WriteString("\x1b[?7h")
	return out.String()
}

// visibleLength counts the runes of a line without its colours.
func visibleLength(line string) int {
	return utf8.RuneCountInString(colorSwitch.ReplaceAllString(line, ""))
}

var colorSwitch = regexp.MustCompile("\x1b\\[[0-9]*m")
