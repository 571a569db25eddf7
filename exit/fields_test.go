package exit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fieldOf is the JSON of one field of the line that Parse finds in a tail.
func fieldOf(t testing.TB, p Parser, tail, field string) string {
	t.Helper()
	text, err := json.Marshal(p.Parse([]byte(tail)))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields[field] == nil {
		t.Fatalf("the line of %q has no %s: %v", tail, field, err)
	}
	return string(fields[field])
}

func TestFields(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	ids := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"%032x"`, i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	refusals := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"agentHash":"`+hex+`","reason":"aborted"},`, n), ",") + "]"
	}
	for _, tt := range []struct{ field, members, want string }{
		{"code", `"code":0`, `0`},
		{"code", `"code":-0`, `0`},
		{"code", `"code":-1`, `-1`},
		{"code", `"code":1.0`, `1`},
		{"code", `"code":1e2`, `100`},
		{"code", `"code":9007199254740991`, `9007199254740991`},
		{"code", `"code":9007199254740992`, `null`},
		{"code", `"code":9007199254740993`, `null`},
		{"code", `"code":9223372036854775808`, `null`},
		{"code", `"code":18446744073709551617`, `null`},
		{"code", `"code":1e400`, `null`},
		{"code", `"code":1.5`, `null`},
		{"code", `"code":"1"`, `null`},
		{"code", `"code":true`, `null`},
		{"code", `"code":null`, `null`},
		{"code", `"code":[0]`, `null`},
		{"code", `"x":0`, `null`},
		{"code", `"Code":0,"CODE":0,"code\u0000":0`, `null`},
		{"code", `"code\u0000":0,"code":1`, `1`},
		{"code", `"code":0,"code":1`, `1`},
		{"code", `"code":0,"code":null`, `null`},
		{"code", `"code":0,"c\u006fde":7`, `7`},
		{"code", `"code":8838840643388017390,"code":3`, `3`},
		{"turns", `"turns":12`, `12`},
		{"turns", `"turns":-3.0`, `-3`},
		{"turns", `"turns":{}`, `null`},

		{"reason", `"code":2,"reason":"cost-cap"`, `"cost-cap"`},
		{"reason", `"reason":"cost-cap","code":2`, `"cost-cap"`},
		{"reason", `"code":2.0,"reason":"mcp-shadowed"`, `"mcp-shadowed"`},
		{"reason", `"code":1,"reason":"cost-cap"`, `null`},
		{"reason", `"code":0,"reason":"cost-cap"`, `null`},
		{"reason", `"reason":"cost-cap"`, `null`},
		{"reason", `"code":2,"reason":"Cost-cap"`, `null`},
		{"reason", `"code":2,"reason":"cost-cap "`, `null`},
		{"reason", `"code":2,"reason":""`, `null`},
		{"reason", `"code":2,"reason":"awaiting-input"`, `null`},
		{"reason", `"code":2,"reason":["cost-cap"]`, `null`},
		{"reason", "\"code\":2,\"reason\":\"cost-cap\xff\"", `null`},
		{"completedReason", `"code":0,"reason":"awaiting-input"`, `"awaiting-input"`},
		{"completedReason", `"code":0,"reason":"awaiting-approval"`, `"awaiting-approval"`},
		{"completedReason", `"code":2,"reason":"awaiting-input"`, `null`},
		{"completedReason", `"code":0,"reason":"cost-cap"`, `null`},
		{"completedReason", `"code":0,"completedReason":"awaiting-input"`, `null`},
		{"why", `"code":2,"reason":"cost-cap","why":"over-cap"`, `"over-cap"`},
		{"why", `"why":"final-payload","code":2,"reason":"cost-cap"`, `"final-payload"`},
		{"why", `"code":2,"reason":"cost-cap","why":"other"`, `null`},
		{"why", `"code":2,"reason":"mcp-shadowed","why":"over-cap"`, `null`},
		{"why", `"code":1,"reason":"cost-cap","why":"over-cap"`, `null`},

		{"tokens", `"tokens":{"total":5}`, `{"total":5}`},
		{"tokens", `"tokens":{"cost":0.5,"total":-0,"input":1,"extra":1}`, `{"input":1,"total":0,"cost":0.5}`},
		{"tokens", `"tokens":{"total":1,"input":-1,"output":"1","cacheRead":1e400,"cacheWrite":null,"cacheWrite1h":2,"reasoning":0}`,
			`{"cacheWrite1h":2,"reasoning":0,"total":1}`},
		{"tokens", `"tokens":{"total":-1}`, `null`},
		{"tokens", `"tokens":{"total":1e999}`, `null`},
		{"tokens", `"tokens":{"total":"1"}`, `null`},
		{"tokens", `"tokens":{"Total":1}`, `null`},
		{"tokens", `"tokens":{"input":1}`, `null`},
		{"tokens", `"tokens":{"total":1},"tokens":{"input":1}`, `null`},
		{"tokens", `"tokens":[{"total":1}]`, `null`},

		{"session", `"session":{"resumed":true,"reason":"resumed","id":"x"}`, `{"resumed":true,"reason":"resumed"}`},
		{"session", `"session":{"resumed":false,"reason":"other"}`, `{"resumed":false,"reason":null}`},
		{"session", `"session":{"resumed":false}`, `{"resumed":false,"reason":null}`},
		{"session", `"session":{"resumed":1}`, `null`},
		{"session", `"session":{"resumed":null}`, `null`},
		{"session", `"session":"resumed"`, `null`},
		{"context", `"context":{"tokens":0,"window":1,"x":2}`, `{"tokens":0,"window":1}`},
		{"context", `"context":{"tokens":1e3,"window":2.0}`, `{"tokens":1000,"window":2}`},
		{"context", `"context":{"tokens":0,"window":0}`, `null`},
		{"context", `"context":{"tokens":-1,"window":1}`, `null`},
		{"context", `"context":{"tokens":1}`, `null`},
		{"context", `"context":{"tokens":1.5,"window":2}`, `null`},

		{"approval", `"code":0,"reason":"awaiting-approval","approval":{"action":"push:main-2","toolCallId":"a_B.1:|/-","x":1}`,
			`{"action":"push:main-2","toolCallId":"a_B.1:|/-"}`},
		{"approval", `"code":0,"reason":"awaiting-input","approval":{"action":"push","toolCallId":"a"}`, `null`},
		{"approval", `"code":1,"reason":"awaiting-approval","approval":{"action":"push","toolCallId":"a"}`, `null`},
		{"approval", `"code":0,"reason":"awaiting-approval","approval":{"action":"push"}`, `null`},
		{"approval", `"code":0,"reason":"awaiting-approval","approval":{"action":"Push","toolCallId":"a"}`, `null`},

		{"steer", `"steer":{"delivered":1,"pending":0,"x":1}`, `{"delivered":1,"pending":0}`},
		{"steer", `"steer":{"delivered":-1,"pending":2}`, `{"delivered":null,"pending":2}`},
		{"steer", `"steer":{"delivered":"1","pending":1.5}`, `null`},
		{"steer", `"steer":{"deliveredIds":` + ids(1) + `}`, `{"delivered":null,"pending":null,"deliveredIds":` + ids(1) + `}`},
		{"steer", `"steer":{"deliveredIds":` + ids(16) + `}`, `{"delivered":null,"pending":null,"deliveredIds":` + ids(16) + `}`},
		{"steer", `"steer":{"delivered":1,"deliveredIds":` + ids(17) + `}`, `{"delivered":1,"pending":null}`},
		{"steer", `"steer":{"delivered":1,"deliveredIds":[]}`, `{"delivered":1,"pending":null}`},
		{"steer", `"steer":{"deliveredIds":[]}`, `null`},
		{"steer", `"steer":{"deliveredIds":["` + hex[:32] + `","` + hex[1:33] + `","` + hex[:32] + `"]}`,
			`{"delivered":null,"pending":null,"deliveredIds":["` + hex[:32] + `","` + hex[1:33] + `"]}`},
		{"steer", `"steer":{"deliveredIds":[` + strings.Repeat(`"`+hex[:32]+`",`, 16) + `"` + hex[:32] + `"]}`, `null`},
		{"steer", `"steer":{"delivered":1,"deliveredIds":["` + hex[:32] + `",1]}`, `{"delivered":1,"pending":null}`},
		{"steer", `"steer":{"delivered":1,"deliveredIds":["` + strings.ToUpper(hex[:32]) + `"]}`, `{"delivered":1,"pending":null}`},
		{"recovery", `"recovery":{"orphans":1,"replayed":2.0,"interrupted":null}`, `{"orphans":1,"replayed":2,"interrupted":null,"notStarted":null}`},
		{"recovery", `"recovery":{"orphans":-1}`, `null`},
		{"recovery", `"recovery":{}`, `null`},
		{"canaryLoad", `"canaryLoad":"loaded"`, `"loaded"`},
		{"canaryLoad", `"canaryLoad":"failed"`, `"failed"`},
		{"canaryLoad", `"canaryLoad":"Loaded"`, `null`},
		{"canaryLoad", `"canaryLoad":true`, `null`},

		{"modelRoles", `"modelRoles":{"refusals":[],"x":1}`, `{"refusals":[]}`},
		{"modelRoles", `"modelRoles":{"refusals":` + refusals(8) + `}`, `{"refusals":` + refusals(8) + `}`},
		{"modelRoles", `"modelRoles":{"refusals":` + refusals(9) + `}`, `null`},
		{"modelRoles", `"modelRoles":{}`, `null`},
		{"modelRoles", `"modelRoles":{"refusals":null}`, `null`},
		{"modelRoles", `"modelRoles":{"refusals":{}}`, `null`},
		{"modelRoles", `"modelRoles":{"refusals":[{"agentHash":"` + hex + `","reason":"other"}]}`, `null`},
		{"modelRoles", `"modelRoles":{"refusals":[{"agentHash":"` + hex[1:] + `","reason":"aborted"}]}`, `null`},
		{"modelRoles", `"modelRoles":{"refusals":[{"agentHash":"` + strings.ToUpper(hex) + `","reason":"aborted"}]}`, `null`},
		{"modelRoles", `"modelRoles":[]`, `null`},
		{"providerFailure", `"code":1,"providerFailure":{"kind":"quota","status":429,"text":"x"}`, `{"kind":"quota","status":429}`},
		{"providerFailure", `"code":1,"providerFailure":{"kind":"quota","status":99}`, `{"kind":"quota"}`},
		{"providerFailure", `"code":1,"providerFailure":{"kind":"quota","status":600}`, `{"kind":"quota"}`},
		{"providerFailure", `"code":1,"providerFailure":{"kind":"quota","status":"429"}`, `{"kind":"quota"}`},
		{"providerFailure", `"code":1,"providerFailure":{"kind":"other","status":429}`, `null`},
		{"providerFailure", `"code":2,"providerFailure":{"kind":"quota"}`, `null`},
		{"providerFailure", `"providerFailure":{"kind":"quota"}`, `null`},
		{"replaySafe", `"replaySafe":false`, `false`},
		{"replaySafe", `"replaySafe":1`, `null`},
		{"toolsStarted", `"toolsStarted":true`, `true`},
		{"toolsStarted", `"toolsStarted":"true"`, `null`},
		{"answerDraftDigest", `"code":0,"answerDraftDigest":"` + hex + `"`, `"` + hex + `"`},
		{"answerDraftDigest", `"code":0,"answerDraftDigest":"` + hex + `0"`, `null`},
		{"answerDraftDigest", `"code":1,"answerDraftDigest":"` + hex + `"`, `null`},
		{"questionRefDigest", `"code":0,"reason":"awaiting-input","questionRefDigest":"` + hex + `"`, `"` + hex + `"`},
		{"questionRefDigest", `"code":0,"reason":"awaiting-approval","questionRefDigest":"` + hex + `"`, `null`},
		{"questionRefDigest", `"code":0,"questionRefDigest":"` + hex + `"`, `null`},
		{"loaded", `"loaded":{"a":[1,"x"]}`, `{"raw":{"a":[1,"x"]}}`},
		{"loaded", `"loaded":0,"loadedCut":true`, `{"raw":0}`},
		{"loaded", `"loadedCut":true`, `{"cut":true}`},
		{"loaded", `"loaded":null,"loadedCut":true`, `{"cut":true}`},
		{"loaded", `"loadedCut":false`, `null`},
		{"loaded", `"loadedCut":"true"`, `null`},

		{"bySupervisor", `"by":"supervisor"`, `true`},
		{"bySupervisor", `"by":"runner"`, `false`},
		{"oomKilled", `"by":"supervisor","code":137,"reason":"oom-killed","resources":{"oomKills":1}`, `true`},
		{"oomKilled", `"resources":{"oomKills":3},"reason":"oom-killed","code":137,"by":"supervisor"`, `true`},
		{"oomKilled", `"by":"supervisor","code":137,"reason":"oom-killed","resources":{"oomKills":0}`, `false`},
		{"oomKilled", `"by":"supervisor","code":137,"reason":"oom-killed","resources":{"oomKills":1,"memPeak":-1}`, `false`},
		{"oomKilled", `"by":"supervisor","code":137,"reason":"oom-killed"`, `false`},
		{"oomKilled", `"by":"supervisor","code":136,"reason":"oom-killed","resources":{"oomKills":1}`, `false`},
		{"oomKilled", `"by":"supervisor","code":137,"reason":"other","resources":{"oomKills":1}`, `false`},
		{"oomKilled", `"code":137,"reason":"oom-killed","resources":{"oomKills":1}`, `false`},
		{"oomKilled", `"by":"supervisor","code":137,"oomKilled":true,"resources":{"oomKills":1}`, `false`},
	} {
		tail := `{"event":"exit",` + tt.members + `}`
		if got := fieldOf(t, Parser{}, tail, tt.field); got != tt.want {
			t.Errorf("Parse(%q): %s = %s, want %s", tail, tt.field, got, tt.want)
		}
	}
}

func TestReadResources(t *testing.T) {
	keys := []string{"memPeak", "swapPeak", "oomKills", "memSomeUsec", "memFullUsec", "cpuUsec", "throttledUsec", "throttled", "pidsPeak"}
	for _, key := range keys {
		others := map[string]string{}
		for _, k := range keys {
			others[k] = "null"
		}
		for given, want := range map[string]string{
			"0": "0", "1.0": "1", "9007199254740991": "9007199254740991", "null": "null",
			"-1": "", "1.5": "", "9007199254740992": "", "1e400": "", `"1"`: "", "true": "", "[]": "", "{}": "",
		} {
			// swapPeak or memPeak beside it shows that the whole block goes.
			beside := "memPeak"
			if key == beside {
				beside = "swapPeak"
			}
			block := "null"
			if want != "" {
				others[beside], others[key] = "7", want
				members := make([]string, len(keys))
				for i, k := range keys {
					members[i] = `"` + k + `":` + others[k]
				}
				block = "{" + strings.Join(members, ",") + "}"
				others[key] = "null"
			}
			tail := fmt.Sprintf(`{"event":"exit","resources":{"extra":-1,%q:%s,%q:7}}`, key, given, beside)
			if got := fieldOf(t, Parser{}, tail, "resources"); got != block {
				t.Errorf("Parse(%q): resources = %s, want %s", tail, got, block)
			}
		}
	}
	for _, given := range []string{`{}`, `{"extra":1}`, `{"memPeak":null}`, `[1]`, `1`, `{"memPeak":1,"memPeak":null}`, `{"mempeak":1}`} {
		tail := `{"event":"exit","resources":` + given + `}`
		if got := fieldOf(t, Parser{}, tail, "resources"); got != "null" {
			t.Errorf("Parse(%q): resources = %s, want null", tail, got)
		}
	}
}

func TestReadUsage(t *testing.T) {
	row := `{"provider":"p","model":"m"}`
	rows := func(n int) string { return strings.TrimSuffix(strings.Repeat(row+",", n), ",") }
	full := `{"provider":"p","model":"m","calls":0,"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cacheWrite1h":0,` +
		`"reasoning":0,"total":0,"cost":0,"unpriced":0,"providerBilled":0}`
	whole := func(piAi, truncated string, n int) string {
		return `{"v":1,"piAi":` + piAi + `,"truncated":` + truncated + `,"models":[` + strings.TrimSuffix(strings.Repeat(full+",", n), ",") + `]}`
	}
	long := strings.Repeat("a", 128)
	for _, tt := range []struct{ given, want string }{
		{`{"v":1,"models":[]}`, whole("null", "false", 0)},
		{`{"v":1.0,"piAi":null,"truncated":null,"models":[` + row + `],"x":1}`, whole("null", "false", 1)},
		{`{"v":1,"piAi":"0.1+b-2","truncated":true,"models":[` + rows(64) + `]}`, whole(`"0.1+b-2"`, "true", 64)},
		{`{"v":1,"piAi":"` + long[:64] + `","models":[]}`, whole(`"`+long[:64]+`"`, "false", 0)},
		{`{"v":1,"piAi":"","models":[]}`, whole("null", "false", 0)},
		{`{"v":1,"models":[{"provider":"p","model":"m","extra":"x","calls":null}]}`, whole("null", "false", 1)},
		{`{"v":1,"piAi":"` + long[:65] + `","models":[]}`, "null"},
		{`{"v":1,"piAi":"a b","models":[]}`, "null"},
		{`{"v":1,"piAi":1,"models":[]}`, "null"},
		{`{"v":1,"truncated":1,"models":[]}`, "null"},
		{`{"v":0,"models":[]}`, "null"},
		{`{"v":1.5,"models":[]}`, "null"},
		{`{"v":"1","models":[]}`, "null"},
		{`{"models":[]}`, "null"},
		{`{"v":1}`, "null"},
		{`{"v":1,"models":{}}`, "null"},
		{`{"v":1,"models":[` + rows(65) + `]}`, "null"},
		{`{"v":1,"models":[` + row + `,1]}`, "null"},
		{`{"v":1,"models":[{"provider":"p"}]}`, "null"},
		{`{"v":1,"models":[{"model":"m"}]}`, "null"},
		{`{"v":1,"models":[{"provider":"p","model":""}]}`, "null"},
		{`{"v":1,"models":[{"provider":"p","model":".m"}]}`, "null"},
		{`[]`, "null"},
	} {
		tail := `{"event":"exit","usage":` + tt.given + `}`
		if got := fieldOf(t, Parser{}, tail, "usage"); got != tt.want {
			t.Errorf("Parse(%q): usage = %s, want %s", tail, got, tt.want)
		}
	}
	counters := []string{"calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "total", "cost", "unpriced", "providerBilled"}
	for _, key := range counters {
		for given, want := range map[string]string{"0": "0", "-0": "0", "2.5": "2.5", "1e3": "1000", "-1": "", "1e400": "", `"1"`: "", "true": "", "[]": ""} {
			tail := fmt.Sprintf(`{"event":"exit","usage":{"v":1,"models":[{"provider":"p","model":"m",%q:%s}]}}`, key, given)
			block := "null"
			if want != "" {
				block = strings.Replace(whole("null", "false", 1), fmt.Sprintf("%q:0", key), fmt.Sprintf("%q:%s", key, want), 1)
			}
			if got := fieldOf(t, Parser{}, tail, "usage"); got != block {
				t.Errorf("Parse(%q): usage = %s, want %s", tail, got, block)
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, tt := range []struct {
		name  string
		valid func(string) bool
		yes   []string
		no    []string
	}{
		{"ValidAction", ValidAction,
			[]string{"a", "a-", "a1-b", "a:b", "deploy:prod-2", a(80), a(40) + ":" + a(39)},
			[]string{"", ":", "a:", ":a", "a:b:c", "A", "1a", "-a", "a:1", "a:-", "a_b", "a b", "a\n", "é", a(81), a(40) + ":" + a(40), "a\x00"}},
		{"ValidModelName", ValidModelName,
			[]string{"a", "A", "0", "a._:/@+-", a(128)},
			[]string{"", ".a", "-", "/a", "a b", "a\n", "é", "aé", a(129), "a\x00", "a,b"}},
		{"ValidDigest", ValidDigest,
			[]string{strings.Repeat("0f", 32)},
			[]string{"", strings.Repeat("0F", 32), strings.Repeat("0f", 31), strings.Repeat("0f", 33), strings.Repeat("0g", 32), strings.Repeat("é", 32)}},
		{"validToolCallID", validToolCallID,
			[]string{"a", "Z0_.:|/-", "-", a(256)},
			[]string{"", a(257), "a b", "a\n", "é", "a+b", "a@b"}},
	} {
		for _, s := range tt.yes {
			if !tt.valid(s) {
				t.Errorf("%s(%q) = false, want true", tt.name, s)
			}
		}
		for _, s := range tt.no {
			if tt.valid(s) {
				t.Errorf("%s(%q) = true, want false", tt.name, s)
			}
		}
	}
}

func TestVocabulary(t *testing.T) {
	own := Parser{Vocabulary: Vocabulary{Policy: []Reason{"budget-spent"}, Session: []Reason{}}}
	for _, tt := range []struct{ field, members, want string }{
		{"reason", `"code":2,"reason":"budget-spent"`, `"budget-spent"`},
		{"reason", `"code":2,"reason":"cost-cap"`, `null`},
		{"completedReason", `"code":0,"reason":"awaiting-input"`, `"awaiting-input"`},
		{"session", `"session":{"resumed":true,"reason":"resumed"}`, `{"resumed":true,"reason":null}`},
	} {
		if got := fieldOf(t, own, `{"event":"exit",`+tt.members+`}`, tt.field); got != tt.want {
			t.Errorf("with a vocabulary of its own, %s of %s = %s, want %s", tt.field, tt.members, got, tt.want)
		}
	}
	v := DefaultVocabulary()
	for _, set := range [][]Reason{v.Policy, v.Completed, v.Session} {
		for i, r := range set {
			if !ValidAction(string(r)) || strings.Contains(string(r), ":") {
				t.Errorf("%q is no token", r)
			}
			set[i] = "changed"
		}
	}
	if len(v.Policy) != 26 || len(v.Completed) != 2 || len(v.Session) != 7 {
		t.Errorf("the default vocabulary has %d, %d and %d reasons, want 26, 2 and 7", len(v.Policy), len(v.Completed), len(v.Session))
	}
	if DefaultVocabulary().Policy[0] == "changed" {
		t.Error("a caller changed the default vocabulary")
	}
}

// full is a line that has every field.
const full = `{"event":"exit","code":0,"reason":"awaiting-input","turns":2,"replaySafe":true,"toolsStarted":false,"modelRoles":{"refusals":[]},` +
	`"answerDraftDigest":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",` +
	`"questionRefDigest":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","loaded":{"x":1}}`

func TestTrusted(t *testing.T) {
	k := mustKey(t, keyText)
	for _, text := range []string{full, `{"event":"exit","code":1,"turns":2,"providerFailure":{"kind":"quota"}}`} {
		signed, _ := Parser{}.ParseSigned([]byte(mustSign(t, k, text)), k)
		if signed.Trusted() != signed {
			t.Errorf("Trusted of a verified line dropped something: %v", signed.Trusted())
		}
		plain := Parser{}.Parse([]byte(text))
		got := plain.Trusted()
		want := &Line{Code: plain.Code, CompletedReason: plain.CompletedReason, Turns: plain.Turns}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Trusted of the unverified line %q (-want +got):\n%s", text, diff)
		}
		if cmp.Equal(plain, got) {
			t.Errorf("Trusted changed the line %q itself", text)
		}
	}
	if (*Line)(nil).Trusted() != nil {
		t.Error("Trusted of no line is a line")
	}
}

// A line keeps nothing of the tail it came from.
func TestLineSharesNoMemory(t *testing.T) {
	tail := []byte(full)
	got := Parser{}.Parse(tail)
	for i := range tail {
		tail[i] = 'x'
	}
	if diff := cmp.Diff(Parser{}.Parse([]byte(full)), got); diff != "" {
		t.Errorf("the line changed with its tail:\n%s", diff)
	}
}
