package exit

import (
	"fmt"
	"strings"
	"testing"
)

// codeOf is the code of a line in a form that tells no line and no code apart.
func codeOf(l *Line) string {
	switch {
	case l == nil:
		return "no line"
	case l.Code == nil:
		return "no code"
	}
	return fmt.Sprint(*l.Code)
}

// Which line of an unsigned tail decides.
func TestParsePicks(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, tt := range map[string]struct{ tail, want string }{
		"empty":          {"", "no line"},
		"only a newline": {"\n", "no line"},
		"only space":     {" \t\r\n\r\n", "no line"},
		"only a log":     {"npm notice\n{\"level\":\"info\"}\n", "no line"},

		"alone":                {`{"event":"exit","code":3}`, "3"},
		"with a newline":       {"{\"event\":\"exit\",\"code\":3}\n", "3"},
		"no newline at end":    {"booting\n{\"event\":\"exit\",\"code\":1}", "1"},
		"CRLF":                 {"log\r\n{\"event\":\"exit\",\"code\":1}\r\n", "1"},
		"space around":         {" \t {\"event\":\"exit\",\"code\":1} \t\r \n", "1"},
		"the last one":         {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2}\n", "2"},
		"text after it":        {"{\"event\":\"exit\",\"code\":1}\nnpm notice\n\n", "1"},
		"other key order":      {`{"code":1,"event":"exit"}`, "1"},
		"space inside":         {`{ "event" : "exit" , "code" : 1 }`, "1"},
		"escaped":              {`{"\u0065vent":"\u0065xit","code":1}`, "1"},
		"no code":              {`{"event":"exit"}`, "no code"},
		"no code, not earlier": {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\"}", "no code"},

		"glued":                 {`Pulling image...{"event":"exit","code":1}`, "1"},
		"glued to JSON":         {`{"msg":"half{"event":"exit","code":1}`, "1"},
		"glued to its like":     {`{"event":"exit","code":{"event":"exit","code":1}`, "1"},
		"glued twice":           {`{"event":"exit","code":2}{"event":"exit","code":1}`, "1"},
		"glued, other order":    {`half{"code":1,"event":"exit"}`, "no line"},
		"glued, space in it":    {`half{"event": "exit","code":1}`, "no line"},
		"between braces":        {`{debug} {"event":"exit","code":0} {x}`, "no line"},
		"noise before":          {`{debug} {"event":"exit","code":1}`, "1"},
		"text after the object": {`{"event":"exit","code":1}x`, "no line"},
		"progress with CR":      {strings.Repeat("10%\r", 10_000) + `{"event":"exit","code":1}`, "1"},
		"NULs before":           {strings.Repeat("\x00", 60_000) + `{"event":"exit","code":3}`, "3"},
		"a NUL after":           {"{\"event\":\"exit\",\"code\":1}\x00", "no line"},
		"NULs on a line":        {"{\"event\":\"exit\",\"code\":1}\n\x00\x00", "1"},
		"BOM":                   {"\ufeff{\"event\":\"exit\",\"code\":1}", "1"},
		"ANSI before":           {"\x1b]11;?\x1b\\\x1b[6n{\"event\":\"exit\",\"code\":1}\r\n", "1"},
		"ANSI after":            {"{\"event\":\"exit\",\"code\":1}\x1b[0m", "no line"},
		"inside an OSC":         {"\x1b]0;{\"event\":\"exit\",\"code\":1}\x07\n", "no line"},
		"invalid UTF-8 before":  {"\xff\xfe{\"event\":\"exit\",\"code\":1}", "1"},
		"invalid UTF-8 inside":  {"{\"event\":\"exit\",\"x\":\"\xff\",\"code\":1}", "1"},
		"invalid UTF-8 event":   {"{\"event\":\"exit\xff\",\"code\":1}", "no line"},
		"U+2028 inside":         {"{\"event\":\"exit\",\"x\":\"\u2028\",\"code\":1}", "1"},
		"U+2028 before":         {"log\u2028{\"event\":\"exit\",\"code\":1}", "1"},
		"NBSP after":            {"{\"event\":\"exit\",\"code\":1}\u00a0", "no line"},
		"vertical tab after":    {"{\"event\":\"exit\",\"code\":1}\v", "no line"},
		"a timestamp inside":    {`{"event":"exit","x":"aa2026-05-01T10:00:00.0Z bb` + "\n" + `2026-05-01T10:00:00.0Z cc","code":1}`, "no line"},

		"cut at the end":             {`{"event":"exit","code":1`, "no line"},
		"cut, an earlier one":        {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2", "1"},
		"cut at the start":           {`vent":"exit","code":1}`, "no line"},
		"cut to the inner object":    {`xit","was":{"event":"exit","code":1}}`, "no line"},
		"anchors by the thousand":    {strings.Repeat(anchor, 4000), "no line"},
		"anchors, then a line":       {strings.Repeat(anchor, 4000) + `{"event":"exit","code":1}`, "1"},
		"in a string":                {`{"msg":"{\"event\":\"exit\",\"code\":0}"}`, "no line"},
		"in a string, twice escaped": {`{"msg":"{\\\"event\\\":\\\"exit\\\"}"}`, "no line"},
		"in an array":                {`[{"event":"exit","code":1}]`, "no line"},
		"in an object":               {`{"x":{"event":"exit","code":1}}`, "no line"},

		"event in another case":   {`{"Event":"exit","code":1}`, "no line"},
		"value in another case":   {`{"event":"Exit","code":1}`, "no line"},
		"event is a list":         {`{"event":["exit"],"code":1}`, "no line"},
		"event longer":            {`{"event":"exited","code":1}`, "no line"},
		"event with a NUL":        {`{"event\u0000":"exit","code":1}`, "no line"},
		"the last event counts":   {`{"event":"exit","code":1,"event":"log"}`, "no line"},
		"the last event is exit":  {`{"event":"log","code":1,"event":"exit"}`, "1"},
		"the last event is null":  {`{"event":"exit","code":1,"event":null}`, "no line"},
		"brackets by the million": {strings.Repeat("[", 1_000_000) + "\n" + `{"event":"exit","code":1}`, "1"},
		"brackets after":          {`{"event":"exit","code":1}` + "\n" + strings.Repeat("[", 1_000_000), "1"},
		"nested 9 999":            {`{"event":"exit","code":1,"x":` + deep(9_999) + `}`, "1"},
		"nested 10 000":           {`{"event":"exit","code":1,"x":` + deep(10_000) + `}`, "no line"},
		"a number past a double":  {`{"event":"exit","code":1,"x":1e999}`, "1"},
		"a code past a double":    {`{"event":"exit","code":1e999}`, "no code"},

		"supervisor alone":             {`{"event":"exit","code":137,"by":"supervisor"}`, "137"},
		"supervisor after the runner":  {"{\"event\":\"exit\",\"code\":0}\nlog\n{\"event\":\"exit\",\"code\":137,\"by\":\"supervisor\"}", "0"},
		"supervisor before the runner": {"{\"event\":\"exit\",\"code\":137,\"by\":\"supervisor\"}\n{\"event\":\"exit\",\"code\":0}", "0"},
		"two supervisors":              {"{\"event\":\"exit\",\"code\":1,\"by\":\"supervisor\"}\n{\"event\":\"exit\",\"code\":2,\"by\":\"supervisor\"}", "2"},
		"the nearest before": {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2}\n" +
			"{\"event\":\"exit\",\"code\":3,\"by\":\"supervisor\"}\n{\"event\":\"exit\",\"code\":4,\"by\":\"supervisor\"}", "2"},
		"by another":          {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2,\"by\":\"Supervisor\"}", "2"},
		"by in a list":        {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2,\"by\":[\"supervisor\"]}", "2"},
		"the last by counts":  {"{\"event\":\"exit\",\"code\":1}\n{\"event\":\"exit\",\"code\":2,\"by\":\"supervisor\",\"by\":null}", "2"},
		"a cut runner's line": {"{\"event\":\"exit\",\"code\":1\n{\"event\":\"exit\",\"code\":137,\"by\":\"supervisor\"}", "137"},
	} {
		if got := codeOf((Parser{}).Parse([]byte(tt.tail))); got != tt.want {
			t.Errorf("%s: Parse(%.120q): code %s, want %s", name, tt.tail, got, tt.want)
		}
	}
}

// Which line of a tail decides when a key was issued. SIGN stands before a line
// that the test signs, FORGE before one that it signs with another key, END
// after one that the log line goes on from.
func TestParseSignedPicks(t *testing.T) {
	k, other := mustKey(t, keyText), mustKey(t, otherText)
	fill := func(tail string) string {
		lines := strings.Split(tail, "\n")
		for i, l := range lines {
			for mark, key := range map[string]Key{"SIGN": k, "FORGE": other} {
				if before, line, ok := strings.Cut(l, mark); ok {
					line, after, _ := strings.Cut(line, "END")
					lines[i] = before + mustSign(t, key, line) + after
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	genuine := `SIGN{"event":"exit","code":1}`
	mac := macOf(keyText, []byte(`{"event":"exit","code":1}`))
	for name, tt := range map[string]struct {
		tail, want string
		auth       Auth
	}{
		"empty":                {"", "no line", Unverified},
		"unsigned":             {`{"event":"exit","code":1}`, "no line", Unverified},
		"of another key":       {`FORGE{"event":"exit","code":1}`, "no line", Unverified},
		"genuine":              {"log\n" + genuine + "\n", "1", Verified},
		"CRLF":                 {"log\r\n" + genuine + "END\r\n", "1", Verified},
		"glued":                {"half" + genuine, "1", Verified},
		"glued to a forged":    {`{"event":"exit","code":9}` + genuine, "1", Verified},
		"glued to a seal":      {`{"event":"exit","code":9,"auth":"` + mac + `"}` + genuine, "1", Verified},
		"forged before":        {"{\"event\":\"exit\",\"code\":9}\n" + genuine, "1", Verified},
		"forged after":         {genuine + "\n{\"event\":\"exit\",\"code\":9}", "1", Verified},
		"forged around":        {"FORGE{\"event\":\"exit\",\"code\":9}\n" + genuine + "\nFORGE{\"event\":\"exit\",\"code\":9}", "1", Verified},
		"text after":           {genuine + "END{}", "no line", Unverified},
		"forged on its line":   {genuine + `END{"event":"exit","code":9}`, "no line", Unverified},
		"its MAC, other code":  {`{"event":"exit","code":9,"auth":"` + mac + `"}` + "\n" + genuine, "1", Verified},
		"its MAC, other order": {`{"code":1,"event":"exit","auth":"` + mac + `"}`, "no line", Unverified},
		"inside another line":  {`{"event":"exit","code":9,"x":` + genuine + `END}`, "no line", Unverified},
		"two genuine":          {"SIGN{\"event\":\"exit\",\"code\":2}\n" + genuine, "1", Verified},
		"the same twice":       {genuine + "\n" + genuine, "1", Verified},

		"says nothing":            {`SIGN{"event":"exit","code":1,"event":"log"}`, "no line", Verified},
		"says nothing, an other":  {genuine + "\n" + `SIGN{"event":"exit","code":2,"event":"log"}`, "1", Verified},
		"says nothing, forged":    {"{\"event\":\"exit\",\"code\":9}\n" + `SIGN{"event":"exit","event":"log"}`, "no line", Verified},
		"supervisor after":        {genuine + "\n" + `SIGN{"event":"exit","code":137,"by":"supervisor"}`, "1", Verified},
		"supervisor, forged line": {"{\"event\":\"exit\",\"code\":9}\n" + `SIGN{"event":"exit","code":137,"by":"supervisor"}`, "137", Verified},
		"forged supervisor":       {genuine + "\n" + `FORGE{"event":"exit","code":137,"by":"supervisor"}`, "1", Verified},
		"two supervisors": {"SIGN{\"event\":\"exit\",\"code\":1,\"by\":\"supervisor\"}\n" +
			`SIGN{"event":"exit","code":2,"by":"supervisor"}`, "2", Verified},
	} {
		tail := fill(tt.tail)
		line, auth := Parser{}.ParseSigned([]byte(tail), k)
		if codeOf(line) != tt.want || auth != tt.auth {
			t.Errorf("%s: ParseSigned(%q): code %s, auth %q, want %s, %q", name, tail, codeOf(line), auth, tt.want, tt.auth)
		}
		if line != nil && !line.Verified {
			t.Errorf("%s: ParseSigned(%q): the line is not marked as verified", name, tail)
		}
		if line, auth := (Parser{}).ParseSigned([]byte(tail), Key{}); line != nil || auth != Unverified {
			t.Errorf("%s: ParseSigned(%q) with the zero Key = %v, %q, want nothing", name, tail, line, auth)
		}
		if line := (Parser{}).Parse([]byte(tail)); line != nil && line.Verified {
			t.Errorf("%s: Parse(%q) marks its line as verified", name, tail)
		}
	}
}

// A line that is longer than the tail, or that the tail cut anywhere, is not
// read from its middle, whatever its middle holds.
func TestParseOfCutTail(t *testing.T) {
	k := mustKey(t, keyText)
	inner := `{"event":"exit","code":9,"auth":"` + strings.Repeat("0", 64) + `"}`
	long := `{"event":"exit","code":1,"x":[` + strings.Repeat(inner+",", 800) + `0],"auth":"` + strings.Repeat("0", 64) + `"}`
	tail := NewTail(0)
	tail.Write([]byte(long))
	if !tail.Cut() {
		t.Fatal("the line fits the tail")
	}
	if line := (Parser{}).Parse(tail.Bytes()); line != nil {
		t.Errorf("Parse of a cut line = %v, want nil", line)
	}
	if line, auth := (Parser{}).ParseSigned(tail.Bytes(), k); line != nil || auth != Unverified {
		t.Errorf("ParseSigned of a cut line = %v, %q, want nothing", line, auth)
	}

	signed := mustSign(t, k, `{"event":"exit","code":1,"session":{"resumed":true}}`)
	for i := range signed {
		for _, cut := range []string{signed[:i], signed[i+1:]} {
			if line := (Parser{}).Parse([]byte(cut)); line != nil {
				t.Errorf("Parse(%q) = %v, want nil", cut, line)
			}
			if line, _ := (Parser{}).ParseSigned([]byte(cut), k); line != nil {
				t.Errorf("ParseSigned(%q) = %v, want nil", cut, line)
			}
		}
	}

	// Lines of a megabyte, many times the tail, do not hide the one after them.
	tail = NewTail(0)
	tail.Write([]byte(strings.Repeat("x", 1_200_000) + "\n" + strings.Repeat("log\n", 100)))
	tail.Write([]byte(signed + "\n"))
	if line, auth := (Parser{}).ParseSigned(tail.Bytes(), k); codeOf(line) != "1" || auth != Verified {
		t.Errorf("after a long line: code %s, auth %q, want 1, %q", codeOf(line), auth, Verified)
	}
}
