package container

import (
	"bytes"
	"strings"
	"testing"

	"github.com/edgehero/dispatch/exit"
)

// A client hands two streams over in pieces; what one says must not split a line
// of the other in the tail. The log has all of it as it came.
func TestStreamsKeepLinesWhole(t *testing.T) {
	const line = `{"event":"exit","code":0}` + "\n"
	long := strings.Repeat("x", maxExitFile+1)
	type piece struct{ stream, text string }
	tests := []struct {
		name   string
		pieces []piece
		want   string // "": as it came
	}{
		{"one stream", []piece{{"out", "a\nb"}, {"out", "c\n"}}, ""},
		{"a line that is split", []piece{{"out", line[:9]}, {"err", "warning\n"}, {"out", line[9:]}}, "warning\n" + line},
		{"both split", []piece{{"out", line[:9]}, {"err", "warn"}, {"out", line[9:]}, {"err", "ing\n"}}, line + "warning\n"},
		{"a line's end and the next one's beginning", []piece{{"out", "a"}, {"err", "b"}, {"out", "\nc\nd"}, {"err", "\n"}}, "a\nc\nb\nd"},
		{"no newline at the end", []piece{{"out", "line"}, {"err", "warning"}}, "warning\nline"},
		{"nothing but a beginning", []piece{{"err", "warning"}}, ""},
		{"longer than an exit line", []piece{{"out", long}, {"err", "b\n"}, {"out", "c\n" + line}}, ""},
		{"longer in pieces", []piece{{"out", long[1:]}, {"out", "xx"}, {"err", "b\n"}, {"out", "y"}, {"err", "z\n"}, {"out", "\n"}}, ""},
	}
	for _, test := range tests {
		var log bytes.Buffer
		out := newOutput(&log)
		out.tail = *exit.NewTail(1 << 20)
		errs := out.stream()
		streams := map[string]*stream{"err": errs, "out": out.stream()}
		var came strings.Builder
		for _, p := range test.pieces {
			came.WriteString(p.text)
			if n, err := streams[p.stream].Write([]byte(p.text)); n != len(p.text) || err != nil {
				t.Errorf("%s: Write = %d, %v", test.name, n, err)
			}
		}
		out.end()
		if test.want == "" {
			test.want = came.String()
		}
		if got := string(out.tail.Bytes()); got != test.want {
			t.Errorf("%s: the tail has %.200q, want %.200q", test.name, got, test.want)
		}
		if log.String() != came.String() {
			t.Errorf("%s: the log has %.200q, want %.200q", test.name, log.String(), came.String())
		}
	}
}
