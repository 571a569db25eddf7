package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLayOut(t *testing.T) {
	jobs := []jobLine{
		{ID: "a", State: stateRunning, Elapsed: 62*time.Second + 900*time.Millisecond, Memory: 3 << 19, Size: 512, Last: "building\tone"},
		{ID: "job-two", State: stateOrphan, Memory: -1},
	}
	plain := screen{columns: 80, rows: 24}
	want := []string{
		"a        running       1m2s     1.5 MiB/512m  building one",
		"job-two  orphan          0s              -/-",
	}
	if diff := cmp.Diff(want, layOut(jobs, plain)); diff != "" {
		t.Errorf("layOut (-want +got):\n%s", diff)
	}
	if got := layOut(nil, plain); len(got) != 0 {
		t.Errorf("layOut of no jobs = %q, want nothing", got)
	}
	got := layOut(jobs, screen{columns: 20, rows: 24})
	if diff := cmp.Diff([]string{"a        running  …", "job-two  orphan   …"}, got); diff != "" {
		t.Errorf("layOut at 20 columns (-want +got):\n%s", diff)
	}
}

// Whatever jobs print and however small the window is: no line reaches the last
// column, no more lines than fit are drawn, no control character is left, and
// colours change nothing but colours.
func TestLayOutFits(t *testing.T) {
	var jobs []jobLine
	for i, last := range []string{"", "\x1b[31mred\x1b[0m", strings.Repeat("é", 300), "a\x07\x00\r\nb", "\xff\xfe", "日本語のとても長い行"} {
		jobs = append(jobs, jobLine{ID: fmt.Sprintf("job-%d-%s", i, strings.Repeat("x", 9*i)), State: stateRunning, Memory: -1, Size: 64, Last: last})
	}
	for columns := 1; columns < 120; columns++ {
		for rows := 1; rows < 12; rows++ {
			lines := layOut(jobs, screen{columns: columns, rows: rows})
			if len(lines) > max(rows-1, 1) {
				t.Errorf("layOut at %d rows: %d lines", rows, len(lines))
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > columns-1 {
					t.Errorf("layOut at %d columns: line %q has %d", columns, line, n)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Errorf("layOut: line %q has a control character", line)
				}
			}
			colored := layOut(jobs, screen{columns: columns, rows: rows, color: true})
			for i := range colored {
				colored[i] = strings.TrimRight(colorSwitch.ReplaceAllString(colored[i], ""), " ")
			}
			if !slices.Equal(colored, lines) {
				t.Errorf("layOut with colours = %q, without %q", colored, lines)
			}
		}
	}
	if got := layOut(jobs, screen{columns: 80, rows: 4}); got[len(got)-1] != "and 4 more" {
		t.Errorf("layOut of 6 jobs at 4 rows ends in %q, want the number of the others", got[len(got)-1])
	}
}

func TestFrame(t *testing.T) {
	term := &emulator{columns: 20}
	var f frame
	draw := func(above string, lines ...string) {
		term.write(strings.ReplaceAll(f.replace(above, lines, term.columns), "\n", "\r\n"))
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, term.screen()); diff != "" {
			t.Errorf("the screen (-want +got):\n%s", diff)
		}
	}
	draw("first\n")
	draw("", "job a", "job b")
	check("first", "job a", "job b")
	draw("second\n", "job b 123456789012")
	check("first", "second", "job b 123456789012")
	term.columns = 5 // what stands there wraps
	draw("", "job b")
	check("first", "second", "job b")
	draw("third\n")
	check("first", "second", "third")
}

// An emulator is as much of a terminal as the display needs: it wraps the lines
// that stand there anew when its width changes, as most do.
type emulator struct {
	columns int
	lines   [][]rune // each as long as was written, with its end
	row     int      // of the cursor, in lines
	column  int
	clip    bool // what does not fit is not wrapped
}

func (e *emulator) screen() []string {
	var lines []string
	for _, line := range e.lines {
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// up moves the cursor up by rows of the window, of which a long line takes more
// than one.
func (e *emulator) up(n int) {
	for range n {
		if e.column >= e.columns {
			e.column -= e.columns
		} else if e.row > 0 {
			e.row--
			e.column = max(len(e.lines[e.row])-1, 0) / e.columns * e.columns
		}
	}
}

func (e *emulator) write(text string) {
	for len(text) > 0 {
		for len(e.lines) <= e.row {
			e.lines = append(e.lines, nil)
		}
		switch text[0] {
		case '\n':
			e.row++
		case '\r':
			e.column = e.column / e.columns * e.columns
		case '\x1b':
			end := strings.IndexFunc(text[1:], func(r rune) bool { return r >= '@' && r != '[' }) + 1
			e.control(text[1:end], text[end])
			text = text[end+1:]
			continue
		default:
			r, size := utf8.DecodeRuneInString(text)
			e.put(r)
			text = text[size:]
			continue
		}
		if text[0] == '\n' {
			e.column = 0
		}
		text = text[1:]
	}
}

func (e *emulator) put(r rune) {
	line := e.lines[e.row]
	for len(line) <= e.column {
		line = append(line, ' ')
	}
	line[e.column] = r
	e.lines[e.row] = line
	if e.column++; e.clip && e.column >= e.columns {
		e.column = e.columns - 1
	}
}

func (e *emulator) control(parameters string, command byte) {
	switch parameters = strings.TrimPrefix(parameters, "["); command {
	case 'A':
		n := 1
		fmt.Sscan(parameters, &n)
		e.up(n)
	case 'J':
		e.lines[e.row] = e.lines[e.row][:min(e.column, len(e.lines[e.row]))]
		e.lines = e.lines[:e.row+1]
	case 'h', 'l':
		e.clip = command == 'l'
	}
}
