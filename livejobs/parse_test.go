package livejobs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/internal/jsonval"
)

func TestParse(t *testing.T) {
	j := Entry{ID: "j", At: ms(1)}
	whole := Entry{ID: "j", Project: "p1", Mem: 512, CPU: 50, At: ms(1), Orphan: true}
	for raw, want := range map[string][]Entry{ // one entry more than these is dropped
		`[{"id":"j","at":1},0]`:                                           {j},
		`[{"id":"j","p":"p1","m":512,"c":50,"at":1,"o":1},null]`:          {whole},
		`[{"o":true,"at":1,"c":50,"m":512,"p":"p1","id":"j","x":[]},"j"]`: {whole},
		`[{"id":"j","p":null,"m":null,"c":null,"at":1,"o":false},[]]`:     {j},
		`[{"id":"j","at":1.0},{}]`:                                        {j},
		`[{"id":"j","at":1},{"id":"","at":1}]`:                            {j},
		`[{"id":"j","at":1},{"id":"a b","at":1}]`:                         {j},
		`[{"id":"j","at":1},{"id":7,"at":1}]`:                             {j},
		`[{"id":"j","at":1},{"id":null,"at":1}]`:                          {j},
		`[{"id":"j","at":1},{"ID":"k","at":1}]`:                           {j}, // case counts
		`[{"id":"j","at":1},{"id":"k"}]`:                                  {j},
		`[{"id":"j","at":1},{"id":"k","at":null}]`:                        {j},
		`[{"id":"j","at":1},{"id":"k","at":"1"}]`:                         {j},
		`[{"id":"j","at":1},{"id":"k","at":0}]`:                           {j},
		`[{"id":"j","at":1},{"id":"k","at":-1}]`:                          {j},
		`[{"id":"j","at":1},{"id":"k","at":1.5}]`:                         {j},
		`[{"id":"j","at":1},{"id":"k","at":9007199254740992}]`:            {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"p":""}]`:                    {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"p":"P"}]`:                   {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"p":1}]`:                     {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"m":0}]`:                     {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"m":-1}]`:                    {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"m":1.5}]`:                   {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"c":"50"}]`:                  {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"c":9007199254740992}]`:      {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"o":0}]`:                     {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"o":2}]`:                     {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"o":null}]`:                  {j},
		`[{"id":"j","at":1},{"id":"k","at":1,"o":"1"}]`:                   {j},
		`[{"id":"j","at":1},{"id":"k","at":7,"id":""}]`:                   {j}, // the last of a repeated key counts
	} {
		if got, dropped, ok := Parse(raw); !ok || dropped != 1 || !cmp.Equal(got, want) {
			t.Errorf("Parse(%s) = %v, %d, %v, want %v, 1", raw, got, dropped, ok, want)
		}
	}
}

func TestParseWhatIsNoRow(t *testing.T) {
	entry := `{"id":"j","at":1}`
	for _, raw := range []string{
		"", " ", "null", "{}", entry, `"[]"`, "0", "[", "[]]", "[] x", "[,]", "[" + entry + ",]", "\ufeff[]", "[NaN]",
		strings.Repeat("[", 10000), "[" + strings.Repeat(" ", 16383) + "]",
	} {
		if got, dropped, ok := Parse(raw); got != nil || dropped != 0 || ok {
			t.Errorf("Parse(%.40q of %d bytes) = %v, %d, %v, want nothing", raw, len(raw), got, dropped, ok)
		}
	}
	if got, dropped, ok := Parse("[" + strings.Repeat(" ", 16382) + "]"); got == nil || len(got) != 0 || dropped != 0 || !ok {
		t.Errorf("Parse of a row of 16 384 bytes = %v, %d, %v, want an empty list", got, dropped, ok)
	}
}

// The first 32 that fit are kept, wherever they stand.
func TestParseKeeps32(t *testing.T) {
	raw := "[" + strings.Repeat("0,", 10) + strings.Repeat(`{"id":"j","at":1},`, 40) + "0]"
	got, dropped, ok := Parse(raw)
	if len(got) != 32 || dropped != 10+8+1 || !ok {
		t.Errorf("Parse of 40 entries and 11 others = %d entries, %d dropped, %v, want 32 and 19", len(got), dropped, ok)
	}
}

func TestParseMore(t *testing.T) {
	for raw, want := range map[string]int64{"0": 0, "7": 7, "007": 7, "999999999": 999999999} {
		if got, ok := ParseMore(raw); got != want || !ok {
			t.Errorf("ParseMore(%q) = %d, %v, want %d", raw, got, ok, want)
		}
	}
	for _, raw := range []string{"", "-1", "+1", " 1", "1 ", "1\n", "1.0", "1e3", "0x1", "1_0", "1000000000", "\uff11", "\u0661", "null"} {
		if got, ok := ParseMore(raw); got != 0 || ok {
			t.Errorf("ParseMore(%q) = %d, %v, want not known", raw, got, ok)
		}
	}
}

// A row is another host's text: whatever it is, what is read fits the format, so
// that it can be published again and reads the same.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"live_jobs_parse.jsonl", "live_jobs_parse_edges.jsonl"} {
		eachVector(f, name, func(row jsonval.Object) {
			raw, _ := row.Get("raw").Text()
			f.Add(raw)
		})
	}
	f.Fuzz(func(t *testing.T, raw string) {
		list, dropped, ok := Parse(raw)
		if !ok && (list != nil || dropped != 0) || ok && list == nil || len(list) > maxEntries || dropped < 0 {
			t.Fatalf("Parse(%q) = %v, %d, %v", raw, list, dropped, ok)
		}
		again, _ := Fields(list, dropped)
		back, dropped, _ := Parse(again)
		if dropped != 0 || len(back) != len(list) || len(list) > 0 && !cmp.Equal(back, list) {
			t.Fatalf("Parse(%q) = %v, and of that %q reads %v, %d dropped", raw, list, again, back, dropped)
		}
	})
}
