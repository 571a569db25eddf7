package supervisor

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
)

func TestLineFor(t *testing.T) {
	kills := func(n int64) *exit.Resources { return &exit.Resources{OOMKills: &n} }
	tests := []struct {
		name      string
		end       ending
		resources *exit.Resources
		want      string
	}{
		{"nothing measured", ending{code: 3}, nil, `{"event":"exit","by":"supervisor","code":3}`},
		{"killed, nothing measured", ending{137, true}, nil, `{"event":"exit","by":"supervisor","code":137}`},
		{"killed, no count", ending{137, true}, &exit.Resources{}, ""},
		{"killed, none for memory", ending{137, true}, kills(0), ""},
		{"killed for memory", ending{137, true}, kills(1), "oom-killed"},
		{"a child killed for memory", ending{0, false}, kills(1), ""},
		{"exit 137, a child killed for memory", ending{137, false}, kills(1), ""},
		{"another signal, a child killed for memory", ending{143, false}, kills(1), ""},
	}
	for _, test := range tests {
		text, err := json.Marshal(lineFor(test.end, test.resources))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(test.want, "{") {
			if string(text) != test.want {
				t.Errorf("%s: line = %s, want %s", test.name, text, test.want)
			}
			continue
		}
		var line exitLine
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		if line.Reason != test.want || line.Code != test.end.code {
			t.Errorf("%s: code %d with reason %q, want %d with %q", test.name, line.Code, line.Reason, test.end.code, test.want)
		}
		if read := (exit.Parser{}).Parse(text); read == nil || read.OOMKilled != (test.want != "") || !read.BySupervisor {
			t.Errorf("%s: Parse(%s) = %+v", test.name, text, read)
		}
	}
}

func TestReadLineInTime(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if _, err := write.WriteString("no newline yet"); err != nil {
		t.Fatal(err)
	}
	line, err := readLine(int(read.Fd()), maxKeyLine, time.Now().Add(50*time.Millisecond))
	if err == nil || line != nil {
		t.Errorf("readLine = %q, %v, want an error that it did not come in time", line, err)
	}
}

func TestReadLineTakesNoMore(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := write.WriteString("line\nrest"); err != nil {
		t.Fatal(err)
	}
	write.Close()
	line, err := readLine(int(read.Fd()), 4, time.Now().Add(time.Minute))
	if string(line) != "line" || err != nil {
		t.Errorf("readLine = %q, %v, want %q", line, err, "line")
	}
	if rest, _ := io.ReadAll(read); string(rest) != "rest" {
		t.Errorf("after the line stands %q, want %q", rest, "rest")
	}
}
