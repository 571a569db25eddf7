package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var flagLine = regexp.MustCompile(`(?m)^  (-[a-z-]+)`)

// Everything that an operator can type, read or branch on stands in
// docs/operating.md.
func TestOperatingIsWhole(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, c := range commands() {
		var help strings.Builder
		p := &program{command: c, stdout: &help, stderr: io.Discard, getenv: func(string) string { return "" }}
		if err := c.run(context.Background(), p, []string{"-h"}); err != flag.ErrHelp {
			t.Errorf("%s -h: %v, want the help", c.name, err)
		}
		if !strings.Contains(help.String(), "\nexample:\n  worker "+c.name) && !strings.Contains(help.String(), "worker "+c.name+" ") {
			t.Errorf("%s -h has no example", c.name)
		}
		found := flagLine.FindAllStringSubmatch(help.String(), -1)
		if len(found) == 0 {
			t.Errorf("%s -h lists no flag", c.name)
		}
		for _, match := range found {
			row := regexp.MustCompile("(?m)^\\| .*`" + match[1] + "`.*\\| .*\\b(" + c.name + "|all)\\b.* \\|")
			if !row.MatchString(page) {
				t.Errorf("docs/operating.md has no row for the flag %s of %s", match[1], c.name)
			}
		}
	}
	for code := exitOK; code <= exitUnavailable; code++ {
		if !strings.Contains(page, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/operating.md has no row for exit code %d", code)
		}
	}
}

// Every member of a job file is in the page's table and in the help of who takes
// one.
func TestJobFileIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Job files\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, member := range members(reflect.TypeFor[jobFile]()) {
		if !regexp.MustCompile("(?m)^\\| [^|]*`" + member + "`").MatchString(section) {
			t.Errorf("docs/operating.md has no row for the member %q of a job file", member)
		}
		if !regexp.MustCompile(`\b` + member + `\b`).MatchString(jobFileNote) {
			t.Errorf("the help on job files does not name %q", member)
		}
	}
	for _, c := range commands() {
		if (c.args == "JOBFILE") != (c.note == jobFileNote) {
			t.Errorf("the help of %s says nothing of job files, or too much", c.name)
		}
	}
}

// Every event that is not package worker's stands on the page.
func TestOperatingNamesEvents(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("grep", "-ohE", `\.(Info|Warn|Error|note)\("[a-z_]+"`, "-r", "--include=*.go", "--exclude=*_test.go",
		".", "../../container", "../../record", "../../livejobs/redisrow", "../../worker/spool", "../../worker/streams").Output()
	if err != nil {
		t.Fatalf("look for events: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if _, event, _ := strings.Cut(strings.TrimSpace(line), `"`); !strings.Contains(string(page), "`"+event[:len(event)-1]+"`") {
			t.Errorf("docs/operating.md does not name the event %s", event[:len(event)-1])
		}
	}
}
