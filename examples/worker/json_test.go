package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// jsonForms is what each command prints with -json. That of run is the record.
var jsonForms = map[string]any{
	"enqueue": enqueued{}, "cancel": cancelled{}, "runs": runList{}, "report": reportData{}, "live": liveFleet{}, "serve": served{},
	"explain": explanation{}, "size": sizing{}, "probe": probed{},
}

// The page's list of each command's members is whole and has nothing else.
func TestJSONIsDocumented(t *testing.T) {
	for name, form := range jsonForms {
		want := slices.Compact(slices.Sorted(slices.Values(members(reflect.TypeOf(form)))))
		if diff := cmp.Diff(want, documentedMembers(t, name)); diff != "" {
			t.Errorf("docs/operating.md on the JSON of %s (-members +documented):\n%s", name, diff)
		}
	}
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		_, ok := jsonForms[c.name]
		if !strings.Contains(string(page), "\n- **"+c.name+"**: ") || !ok && c.name != "run" {
			t.Errorf("the JSON of %s is not documented, or not held by this test", c.name)
		}
	}
}

var member = regexp.MustCompile("`([a-z][A-Za-z0-9]*)`")

// documentedMembers returns the names that docs/operating.md gives to the members
// of a command's JSON, sorted.
func documentedMembers(t *testing.T, command string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, item, ok := strings.Cut(section, "\n- **"+command+"**: ")
	if !ok {
		t.Fatalf("docs/operating.md says nothing of the JSON of %s", command)
	}
	item, _, _ = strings.Cut(item, "\n- ")
	item, _, _ = strings.Cut(item, "\n\n")
	names := map[string]bool{}
	for _, match := range member.FindAllStringSubmatch(item, -1) {
		names[match[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// members returns the names of a type's members and of those of this package's
// types below it.
func members(of reflect.Type) (names []string) {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[program]().PkgPath() {
		return nil
	}
	for i := range of.NumField() {
		field := of.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(append(names, name), members(field.Type)...)
		}
	}
	return names
}

// typed runs a command as main does and returns what it printed.
func typed(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	code = p.main(t.Context(), args)
	return code, out.String(), errs.String()
}

// checkJSON holds that a text is one JSON document with the members that are
// documented for a command. Below those of other packages it does not look.
func checkJSON(t *testing.T, command, text string, elsewhere ...string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var top map[string]any
	if err := d.Decode(&top); err != nil {
		t.Errorf("%s -json prints %q: %v", command, text, err)
		return
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("%s -json prints more than one document: %q", command, text)
	}
	form := reflect.TypeOf(jsonForms[command])
	var want []string
	for i := range form.NumField() {
		name, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(top))); diff != "" {
		t.Errorf("%s -json (-want +got):\n%s", command, diff)
	}
	documented := documentedMembers(t, command)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, value := range v {
				if !slices.Contains(documented, name) {
					t.Errorf("%s -json prints the member %q, which docs/operating.md does not name", command, name)
				}
				if !slices.Contains(elsewhere, name) {
					walk(value)
				}
			}
		}
	}
	walk(top)
}

// Each command is typed with -json, and its output has the members that are
// documented.
func TestJSONOutput(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	log := filepath.Join(folder, "log")
	if err := os.WriteFile(log, []byte(`{"event":"exit","code":2,"turns":1.5}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	code, out, errs := typed(t, `{"id": "ran", "command": ["true"], "project": "site"}`, "run", "-json", "-data", data, "-runtime", "none", "-")
	if code != exitOK {
		t.Fatalf("run -json = %d, %s", code, errs)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../docs/record.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := jsonschema.UnmarshalJSON(strings.NewReader(out)); err != nil || schema.Validate(v) != nil {
		t.Errorf("run -json prints %s, want a record: %v, %v", out, err, schema.Validate(v))
	}

	for _, c := range []struct {
		args      []string
		stdin     string
		elsewhere []string // members whose values other packages document
	}{
		{[]string{"enqueue", "-json", "-data", data, "-delay", "1h", "-"}, `{"id": "later", "command": ["true"]}`, nil},
		{[]string{"cancel", "-json", "-data", data, "later"}, "", nil},
		{[]string{"runs", "-json", "-data", data}, "", []string{"runs"}},
		{[]string{"report", "-json", "-data", data}, "", nil},
		{[]string{"explain", "-json", "-container-exit", "2", log}, "", []string{"line"}},
		{[]string{"size", "-json"}, "", nil},
	} {
		code, out, errs := typed(t, c.stdin, c.args...)
		if code != exitOK || errs != "" {
			t.Errorf("%v = %d, %s", c.args, code, errs)
		}
		checkJSON(t, c.args[0], out, c.elsewhere...)
	}
}
