package exit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplainCandidates(t *testing.T) {
	k, other := mustKey(t, keyText), mustKey(t, otherText)
	genuine := mustSign(t, k, `{"event":"exit","code":1}`)
	supervisor := mustSign(t, k, `{"event":"exit","code":137,"by":"supervisor"}`)
	type found struct {
		number  int
		finding Finding
	}
	for name, tt := range map[string]struct {
		tail string
		key  Key
		want []found
	}{
		"no candidate": {"log\n{\"level\":\"info\"}\n", Key{}, nil},
		"unsigned": {strings.Join([]string{
			`log`,
			`{"event":"exit","code":1}`,
			``,
			`{"event":"exit","code":2}`,
			`{"Event":"exit","code":3}`,
			`{"event":"exit","code":3}x`,
			`{"event":"exit","code":137,"by":"supervisor"}`,
			`{"event":"exit","code":4`,
		}, "\n"), Key{}, []found{
			{2, LaterDecided}, {4, Decisive}, {5, NotExit}, {6, NotJSON}, {7, Outranked}, {8, CutAtEnd},
		}},
		"two supervisors": {
			"{\"event\":\"exit\",\"by\":\"supervisor\"}\n{\"event\":\"exit\",\"by\":\"supervisor\"}", Key{},
			[]found{{1, LaterDecided}, {2, Decisive}},
		},
		"signed": {strings.Join([]string{
			genuine[10:],
			`log`,
			genuine,
			`{"event":"exit","code":2}`,
			genuine,
			supervisor,
			mustSign(t, other, `{"event":"exit","code":3}`),
			mustSign(t, k, `{"event":"exit","event":"log"}`),
			genuine + "x",
			genuine[:len(genuine)-5],
		}, "\n"), k, []found{
			{1, CutAtStart}, {3, LaterDecided}, {4, NotSigned}, {5, Decisive}, {6, Outranked}, {7, BadSignature},
			{8, NotExit}, {9, NotSigned}, {10, CutAtEnd},
		}},
	} {
		e := Parser{}.Explain([]byte(tt.tail), tt.key)
		var got []found
		lines := strings.Split(tt.tail, "\n")
		for _, c := range e.Candidates {
			got = append(got, found{c.Number, c.Finding})
			if string(c.Text) != lines[c.Number-1] {
				t.Errorf("%s: candidate %d is %q, want %q", name, c.Number, c.Text, lines[c.Number-1])
			}
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("%s: Explain(%q) (-want +got):\n%s", name, tt.tail, diff)
		}
		line, auth := Parser{}.ParseSigned([]byte(tt.tail), tt.key)
		if tt.key.IsZero() {
			line, auth = Parser{}.Parse([]byte(tt.tail)), Unchecked
		}
		if !cmp.Equal(e.Line, line) || e.Auth != auth {
			t.Errorf("%s: Explain(%q) = %v, %q, the parse says %v, %q", name, tt.tail, e.Line, e.Auth, line, auth)
		}
		if (e.Fields == nil) != (line == nil) {
			t.Errorf("%s: Explain(%q) has fields %v", name, tt.tail, e.Fields)
		}
	}
}

func TestExplainFields(t *testing.T) {
	tail := `{"event":"exit","code":0,"turns":1.5,"reason":"awaiting-approval","why":"over-cap","tokens":null,"loaded":1,"loadedCut":true,"approval":7}`
	dropped := map[string]string{
		"turns":     "not a safe integer",
		"why":       "only when code is 2 and reason is cost-cap",
		"approval":  "not an object with a valid action and toolCallId",
		"loadedCut": "only without loaded",
	}
	keptFields := map[string]bool{"code": true, "completedReason": true, "loaded": true}
	e := Parser{}.Explain([]byte(tail), Key{})
	if len(e.Fields) != len(fields) {
		t.Errorf("Explain tells of %d fields, want %d", len(e.Fields), len(fields))
	}
	for _, f := range e.Fields {
		if f.Kept != keptFields[f.Name] || f.Why != dropped[f.Name] {
			t.Errorf("Explain(%q): %+v, want kept %v, why %q", tail, f, keptFields[f.Name], dropped[f.Name])
		}
	}
}

// Every field of a Line has a place in the table, under its JSON name.
func TestFieldsAreTheLines(t *testing.T) {
	names := map[string]bool{}
	for _, f := range fields {
		if names[f.name] {
			t.Errorf("field %s stands twice", f.name)
		}
		names[f.name] = true
	}
	names["bySupervisor"] = names["by"]
	for name := range asMap(t, &Line{}) {
		if !names[name] && name != "verified" {
			t.Errorf("no reader for the field %s", name)
		}
	}
}

// A field is kept exactly when the line shows it, for every vector.
func TestExplainAgreesWithLine(t *testing.T) {
	for _, file := range vectorFiles {
		for _, v := range readVectors(t, file) {
			e := Parser{}.Explain([]byte(v.Tail), Key{})
			if e.Line == nil {
				continue
			}
			shown := asMap(t, e.Line)
			shown["by"], shown["loadedCut"] = shown["bySupervisor"], e.Line.Loaded != nil && e.Line.Loaded.Cut
			for _, f := range e.Fields {
				there := shown[f.Name] != nil && (shown[f.Name] != false || f.Name == "replaySafe" || f.Name == "toolsStarted")
				if f.Kept != there && f.Name != "loaded" || f.Kept && f.Why != "" {
					t.Errorf("Explain(%q): %+v, the line shows %v", v.Tail, f, shown[f.Name])
				}
			}
		}
	}
}
