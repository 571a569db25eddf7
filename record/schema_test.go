package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const schemaFile = "../docs/record.schema.json"

func openSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asSchemaValue(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rewritten is a text as this build writes the record that it reads there.
func rewritten(t *testing.T, text []byte) []byte {
	t.Helper()
	r, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	line, err := r.line()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func readWhole(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSchemaTakesWhatIsWritten(t *testing.T) {
	schema := openSchema(t)
	check := func(name string, text []byte) {
		t.Helper()
		if err := schema.Validate(asSchemaValue(t, text)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	files, err := filepath.Glob("testdata/v1/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no old records: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		check(name, rewritten(t, text))
	}
	for _, run := range []Run{
		{JobID: "bare"}, sampleRun("a:<b>\u2028", 2), {JobID: "refused", Outcome: Policy, Reason: "job-size-exceeds-host", HostBudget: &HostBudget{}},
	} {
		r := Build(run)
		line, err := r.line()
		if err != nil {
			t.Fatal(err)
		}
		check("Build of "+run.JobID, line)
	}
	check("whole.json", readWhole(t))
}

// A record with every key there can be stays byte for byte as it is.
func TestWholeRecordIsWhole(t *testing.T) {
	text := readWhole(t)
	if got := rewritten(t, text); !bytes.Equal(got, text) {
		t.Errorf("whole.json is written as\n%s", got)
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if _, ok := whole[key]; !ok && key != "bundleSkipped" { // never beside a bundle
			t.Errorf("whole.json lacks %q", key)
		}
	}
}

func TestSchemaTakesVectors(t *testing.T) {
	schema := openSchema(t)
	check := func(name, key string, text []byte) (present bool) {
		t.Helper()
		value := asSchemaValue(t, rewritten(t, text))
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		return value.(map[string]any)[key] != nil
	}
	for _, c := range []struct{ file, key string }{
		{"rec_approval", "approval"}, {"rec_bundle", "bundle"}, {"rec_bundle_edges", "bundle"}, {"rec_capacity", "capacity"},
		{"rec_checkpoints", "checkpoints"}, {"rec_earlier", "earlier"}, {"rec_host_budget", "hostBudget"},
		{"rec_progress", "progress"}, {"rec_recovered", "recovered"}, {"rec_steered", "steered"},
	} {
		present := 0
		for i, row := range readVectors(t, c.file, "in", "want") {
			text := fmt.Appendf(nil, `{"jobId":"j","outcome":"completed","backend":"openshell",%q:%s}`, c.key, row["in"])
			if check(fmt.Sprintf("%s row %d", c.file, i+1), c.key, text) {
				present++
			}
		}
		if present == 0 {
			t.Errorf("%s: no row is a record with %q", c.file, c.key)
		}
	}
	for _, file := range []string{"rec_openshell", "rec_openshell_edges"} {
		for i, row := range readVectors(t, file, "in", "backend", "want") {
			text := fmt.Appendf(nil, `{"jobId":"j","outcome":"completed","backend":%s,"openshell":%s}`, row["backend"], row["in"])
			present := check(fmt.Sprintf("%s row %d", file, i+1), "openshell", text)
			if want := string(row["want"]) != "null"; present != want {
				t.Errorf("%s row %d: openshell is there: %v, want %v", file, i+1, present, want)
			}
		}
	}
}

// Wherever a record has another key, lacks one or has another kind of value, it
// is none.
func TestSchemaRefusesMutants(t *testing.T) {
	schema := openSchema(t)
	whole := asSchemaValue(t, readWhole(t))
	refuse := func(what string) {
		t.Helper()
		if schema.Validate(whole) == nil {
			text, _ := json.Marshal(whole)
			t.Errorf("the schema takes a record with %s: %s", what, text)
		}
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for i := range v {
				kept := v[i]
				v[i] = []any{map[string]any{}}
				refuse("another kind of value in " + path)
				v[i] = kept
				walk(path, kept)
			}
		case map[string]any:
			v["another"] = nil
			refuse("another key in " + path)
			delete(v, "another")
			for _, key := range slices.Sorted(maps.Keys(v)) {
				kept := v[key]
				v[key] = []any{map[string]any{}}
				refuse("another kind of value in " + path + "." + key)
				v[key] = kept
				walk(path+"."+key, kept)
			}
		}
	}
	walk("", whole)
	for key := range structFields(reflect.TypeFor[Record]()).required {
		object := whole.(map[string]any)
		kept := object[key]
		delete(object, key)
		refuse("no " + key)
		object[key] = kept
	}

	for _, c := range []struct{ from, to string }{
		{`"outcome":"completed"`, `"outcome":"lost"`},
		{`"outcome":"completed","reason":null`, `"outcome":"failed","reason":null`},
		{`"outcome":"completed","reason":null`, `"outcome":"policy","reason":"Some text."`},
		{`"jobId":"repeat:nightly:1777629600000"`, `"jobId":""`},
		{`"kind":"gitlab"`, `"kind":"bitbucket"`},
		{`"target":"group/site!12"`, `"target":"/home/alice"`},
		{`"startedAt":"2026-05-01T10:00:00.000Z"`, `"startedAt":"2026-05-01"`},
		{`"exitCode":0`, `"exitCode":0.5`},
		{`"source":"env"`, `"source":"user"`},
		{`"memMiB":"off"`, `"memMiB":"none"`},
		{`"slots":4`, `"slots":0`},
		{`"actorKind":"panel",`, ``},
		{`"mode":"copy"`, `"mode":"bind"`},
		{`"placeholders":1,"plain":1`, `"placeholders":1`},
		{`"v":1}` + "\n", `"v":2}`},
		{`"v":1}` + "\n", `"bundleSkipped":"fork","v":1}`},
	} {
		text := strings.Replace(string(readWhole(t)), c.from, c.to, 1)
		if text == string(readWhole(t)) {
			t.Errorf("whole.json has no %s", c.from)
		}
		if schema.Validate(asSchemaValue(t, []byte(text))) == nil {
			t.Errorf("the schema takes %s for %s", c.to, c.from)
		}
	}
}

// A field that is added to a record has to be added to the schema.
func TestSchemaListsEveryField(t *testing.T) {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root schemaNode
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	checkFields(t, root.Defs, &root, reflect.TypeFor[Record]())
}

// A schemaNode is as much of a schema as says which keys an object has.
type schemaNode struct {
	Ref        string                 `json:"$ref"`
	AnyOf      []*schemaNode          `json:"anyOf"`
	Items      *schemaNode            `json:"items"`
	Required   []string               `json:"required"`
	Properties map[string]*schemaNode `json:"properties"`
	Defs       map[string]*schemaNode `json:"$defs"`
}

// resolve follows references and the first of two choices, the other of which is
// null.
func (n *schemaNode) resolve(defs map[string]*schemaNode) *schemaNode {
	for n != nil {
		switch {
		case n.Ref != "":
			n = defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
		case len(n.AnyOf) > 0:
			n = n.AnyOf[0]
		case n.Items != nil:
			n = n.Items
		default:
			return n
		}
	}
	return nil
}

type jsonFields struct {
	all      map[string]reflect.Type
	required map[string]bool
}

// structFields returns the keys that a struct is written with, nil when it is
// written in a way of its own or is no struct.
func structFields(of reflect.Type) jsonFields {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.Implements(reflect.TypeFor[json.Marshaler]()) {
		return jsonFields{}
	}
	f := jsonFields{map[string]reflect.Type{}, map[string]bool{}}
	for i := range of.NumField() {
		name, option, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		f.all[name] = of.Field(i).Type
		if option != "omitempty" {
			f.required[name] = true
		}
	}
	return f
}

func checkFields(t *testing.T, defs map[string]*schemaNode, n *schemaNode, of reflect.Type) {
	t.Helper()
	fields := structFields(of)
	if fields.all == nil {
		return
	}
	if n = n.resolve(defs); n == nil {
		t.Errorf("%s says nothing of %v", schemaFile, of)
		return
	}
	got, want := slices.Sorted(maps.Keys(n.Properties)), slices.Sorted(maps.Keys(fields.all))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: properties of %v (-fields +schema):\n%s", schemaFile, of, diff)
	}
	slices.Sort(n.Required)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields.required)), n.Required); diff != "" {
		t.Errorf("%s: required of %v (-fields +schema):\n%s", schemaFile, of, diff)
	}
	for name, field := range fields.all {
		checkFields(t, defs, n.Properties[name], field)
	}
}
