package jsonval

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func mustParse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%q) = %v, want a value", text, err)
	}
	return v
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "{", `{"a":1}x`, `{"a":1}{}`, "[1,]", "01", "+1", ".5", "1.", "NaN",
		"'a'", "\"a\nb\"", `{"a" 1}`, "\x00", "\ufeff{}", strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		if v, err := Parse([]byte(text)); err == nil || v.Exists() {
			t.Errorf("Parse(%.20q) = %q, %v, want an error", text, v.Raw(), err)
		}
	}
	mustParse(t, strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000))
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		text  string
		int   int64
		isInt bool
		float bool
	}{
		{"0", 0, true, true},
		{"-0", 0, true, true},
		{"1.0", 1, true, true},
		{"1e3", 1000, true, true},
		{"10e-1", 1, true, true},
		{"-7", -7, true, true},
		{"9007199254740991", MaxSafeInt, true, true},
		{"9007199254740992", 0, false, true},
		{"-9007199254740992", 0, false, true},
		{"1.5", 0, false, true},
		{"1e308", 0, false, true},
		{"1e400", 0, false, false},
		{"true", 0, false, false},
		{`"1"`, 0, false, false},
		{"null", 0, false, false},
		{"[1]", 0, false, false},
	} {
		v := mustParse(t, tt.text)
		if n, ok := v.Int(); n != tt.int || ok != tt.isInt {
			t.Errorf("Int of %s = %d, %v, want %d, %v", tt.text, n, ok, tt.int, tt.isInt)
		}
		if _, ok := v.Float(); ok != tt.float {
			t.Errorf("Float of %s: ok = %v, want %v", tt.text, ok, tt.float)
		}
		if n, ok := v.Count(); ok != (tt.isInt && tt.int >= 0) || n != max(tt.int, 0) {
			t.Errorf("Count of %s = %d, %v", tt.text, n, ok)
		}
	}
}

func TestObject(t *testing.T) {
	o, ok := mustParse(t, ` { "a" : 1 , "A":2, "\u0061":{"x":1}, "a":{"y":[ ]}, "a\u0000":3, "k":null } `).Object()
	if !ok {
		t.Fatal("Object: not an object")
	}
	if got := string(o.Get("a").Raw()); got != `{"y":[ ]}` {
		t.Errorf(`Get("a") = %s, want the last member, whole`, got)
	}
	if got := string(o.Get("A").Raw()); got != "2" {
		t.Errorf(`Get("A") = %s, want 2: keys keep their case`, got)
	}
	if !o.Get("k").IsNull() || o.Get("k").Exists() == o.Get("none").Exists() {
		t.Error("a null member and an absent one must differ")
	}
	if _, ok := mustParse(t, "[]").Object(); ok {
		t.Error("an array is no object")
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		`"plain"`:         "plain",
		`"a\"\\\n\u00e9"`: "a\"\\\né",
		`"ü"`:             "ü",
		"\"\xff\"":        "\ufffd",
		`"\ud800"`:        "\ufffd",
		"\"\xc3\\n\"":     "\ufffd\n",
	} {
		if got, ok := mustParse(t, text).Text(); got != want || !ok {
			t.Errorf("Text of %q = %q, %v, want %q", text, got, ok, want)
		}
	}
	if _, ok := (Value{}).Text(); ok {
		t.Error("the zero Value is no text")
	}
}

// FuzzParse holds the walk against encoding/json: what it accepts, we take
// apart into the same values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"c\"]"}],"d":null}`, `[ ]`, `"x"`, ` -1.5e3 `, `{"a":{},"a":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		var want any
		if wantErr := json.Unmarshal(text, &want); err == nil && wantErr != nil {
			return // a number that only fits no double
		} else if (err == nil) != (wantErr == nil) {
			t.Fatalf("Parse(%q) = %v, encoding/json says %v", text, err, wantErr)
		}
		if err == nil {
			compare(t, v, want)
		}
	})
}

func compare(t *testing.T, v Value, want any) {
	switch want := want.(type) {
	case nil:
		if !v.IsNull() {
			t.Fatalf("%q is not null", v.Raw())
		}
	case bool:
		if b, ok := v.Bool(); b != want || !ok {
			t.Fatalf("Bool of %q = %v, %v", v.Raw(), b, ok)
		}
	case float64:
		if f, ok := v.Float(); f != want || !ok || math.IsInf(f, 0) {
			t.Fatalf("Float of %q = %v, %v, want %v", v.Raw(), f, ok, want)
		}
	case string:
		if s, ok := v.Text(); s != want || !ok {
			t.Fatalf("Text of %q = %q, %v, want %q", v.Raw(), s, ok, want)
		}
	case []any:
		list, ok := v.List()
		if !ok || len(list) != len(want) {
			t.Fatalf("List of %q has %d elements, want %d", v.Raw(), len(list), len(want))
		}
		for i := range list {
			compare(t, list[i], want[i])
		}
	case map[string]any:
		o, ok := v.Object()
		if !ok {
			t.Fatalf("%q is no object", v.Raw())
		}
		for key, w := range want {
			compare(t, o.Get(key), w)
		}
	}
}

func TestMembersEnd(t *testing.T) {
	var got []string
	for key, value := range mustParse(t, `{"a":1,"b":{"c":[]},"\u0061":3}`).Members {
		if got = append(got, string(key)+"="+string(value.Raw())); len(got) == 2 {
			break
		}
	}
	if want := []string{"a=1", `b={"c":[]}`}; !slices.Equal(got, want) {
		t.Errorf("the first two members are %q, want %q", got, want)
	}
	for _, text := range []string{"[1]", `"{"`, "null", "1"} {
		for key := range mustParse(t, text).Members {
			t.Errorf("%s has a member %q, want none", text, key)
		}
	}
}
