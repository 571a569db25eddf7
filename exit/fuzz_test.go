package exit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// pickByJSON is the pick of the decisive line written a second time, upon
// encoding/json's maps.
func pickByJSON(tail []byte) map[string]any {
	var supervisors map[string]any
	lines := strings.Split(string(tail), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.Trim(lines[i], " \t\r")
		o, ok := objectByJSON(line)
		if at := strings.LastIndex(line, anchor); !ok && at >= 0 {
			o, _ = objectByJSON(line[at:])
		}
		switch {
		case o == nil || o["event"] != "exit":
		case o["by"] != "supervisor":
			return o
		case supervisors == nil:
			supervisors = o
		}
	}
	return supervisors
}

// objectByJSON returns nil for JSON that is no object, and false for no JSON.
func objectByJSON(text string) (map[string]any, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if !json.Valid([]byte(text)) || d.Decode(&v) != nil {
		return nil, false
	}
	o, _ := v.(map[string]any)
	return o, true
}

// FuzzParse holds the pick and the plain fields against a second
// implementation, and every block against its own reader: what was rebuilt
// rebuilds into itself.
func FuzzParse(f *testing.F) {
	addVectors(f, func(tail string) { f.Add([]byte(tail)) })
	f.Fuzz(func(t *testing.T, tail []byte) {
		before := bytes.Clone(tail)
		got := Parser{}.Parse(tail)
		if !bytes.Equal(tail, before) {
			t.Fatalf("Parse(%q) changed its argument", before)
		}
		want := pickByJSON(tail)
		if (got == nil) != (want == nil) {
			t.Fatalf("Parse(%q) = %v, want a line of %v", tail, got, want)
		}
		if diff := cmp.Diff(got, Parser{}.Explain(tail, Key{}).Line); diff != "" {
			t.Fatalf("Explain(%q) differs from Parse:\n%s", tail, diff)
		}
		if got == nil {
			return
		}
		if got.Verified || got.BySupervisor != (want["by"] == "supervisor") {
			t.Fatalf("Parse(%q) = %+v", tail, got)
		}
		if diff := cmp.Diff(integerByJSON(want["code"]), got.Code); diff != "" {
			t.Fatalf("Parse(%q): code (-want +got):\n%s", tail, diff)
		}
		if diff := cmp.Diff(integerByJSON(want["turns"]), got.Turns); diff != "" {
			t.Fatalf("Parse(%q): turns (-want +got):\n%s", tail, diff)
		}
		checkStable(t, got)
	})
}

func integerByJSON(v any) *int64 {
	n, _ := v.(json.Number)
	f, err := n.Float64()
	if err != nil || f != float64(int64(f)) || f > 1<<53-1 || f < -(1<<53-1) {
		return nil
	}
	i := int64(f)
	return &i
}

// checkStable parses the JSON of a line as an exit line once more.
func checkStable(t *testing.T, l *Line) {
	t.Helper()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatalf("%+v has no JSON: %v", l, err)
	}
	v, err := jsonval.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := v.Object()
	again := Line{
		Tokens: ReadTokens(o.Get("tokens")), Usage: ReadUsage(o.Get("usage")), Session: ReadSession(o.Get("session"), Vocabulary{}),
		Context: ReadContext(o.Get("context")), Resources: ReadResources(o.Get("resources")), Approval: ReadApproval(o.Get("approval")),
		Steer: ReadSteer(o.Get("steer")), Recovery: ReadRecovery(o.Get("recovery")),
		ModelRoles: ReadModelRoles(o.Get("modelRoles")), ProviderFailure: ReadProviderFailure(o.Get("providerFailure")),
	}
	blocks := Line{
		Tokens: l.Tokens, Usage: l.Usage, Session: l.Session, Context: l.Context, Resources: l.Resources, Approval: l.Approval,
		Steer: l.Steer, Recovery: l.Recovery, ModelRoles: l.ModelRoles, ProviderFailure: l.ProviderFailure,
	}
	if diff := cmp.Diff(blocks, again); diff != "" {
		t.Fatalf("a rebuilt line does not rebuild into itself:\n%s", diff)
	}
}

// verifiedLines are the signed objects of a tail as they were before they were
// signed, found without this package's reader.
func verifiedLines(tail []byte, keyText string) []string {
	var verified []string
	for line := range strings.SplitSeq(string(tail), "\n") {
		line = strings.Trim(line, " \t\r")
		open := strings.LastIndex(line, `,"auth":"`)
		start := strings.LastIndex(line, anchor)
		if start < 0 || open < start {
			continue
		}
		unsigned := line[start:open] + "}"
		if line[open:] == `,"auth":"`+macOf(keyText, []byte(unsigned))+`"}` {
			verified = append(verified, unsigned)
		}
	}
	return verified
}

// FuzzParseSigned puts one genuine line into a hostile tail. A line that
// verifies is that line and no other, and the answer is what Parse would say of
// a tail that holds the verified lines alone.
func FuzzParseSigned(f *testing.F) {
	other := mustKey(f, otherText)
	line := []byte(`{"event":"exit","code":0,"turns":3}`)
	addVectors(f, func(tail string) {
		f.Add([]byte(tail), line, uint16(0))
		f.Add([]byte(tail), line, uint16(len(tail)))
		for l := range strings.Lines(tail) {
			if signed, err := other.Sign([]byte(strings.TrimSpace(l))); err == nil {
				f.Add(append([]byte(tail+"\n"), signed...), []byte(strings.TrimSpace(l)), uint16(len(tail)+1))
			}
		}
	})
	f.Fuzz(func(t *testing.T, tail, line []byte, at uint16) {
		k := mustKey(t, keyText)
		signed, err := k.Sign(line)
		if err == nil {
			i := min(int(at), len(tail))
			tail = append(append(bytes.Clone(tail[:i]), signed...), tail[i:]...)
		}
		verified := verifiedLines(tail, keyText)
		for _, v := range verified {
			if err != nil || v != string(line) {
				t.Fatalf("%q verifies and was never signed", v)
			}
		}
		got, auth := Parser{}.ParseSigned(tail, k)
		if (auth == Verified) != (len(verified) > 0) || auth == Unchecked {
			t.Fatalf("ParseSigned(%q): auth %q with the verified lines %q", tail, auth, verified)
		}
		want := Parser{}.Parse([]byte(strings.Join(verified, "\n")))
		if want != nil {
			want.Verified = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("ParseSigned(%q) (-want +got):\n%s", tail, diff)
		}
		if e := (Parser{}).Explain(tail, k); e.Auth != auth || !cmp.Equal(e.Line, got) {
			t.Fatalf("Explain(%q) = %v, %q, want %v, %q", tail, e.Line, e.Auth, got, auth)
		}
		if line, auth := (Parser{}).ParseSigned(tail, mustKey(t, strings.Repeat("0", 64))); line != nil || auth != Unverified {
			t.Fatalf("ParseSigned(%q) with a key that signed nothing = %v, %q", tail, line, auth)
		}
	})
}

// FuzzSignVerify: what Sign gives, Verify takes, wherever it stands at the end
// of a line, and nothing that differs from it in one bit.
func FuzzSignVerify(f *testing.F) {
	addVectors(f, func(tail string) {
		for l := range strings.Lines(tail) {
			f.Add(mustHex(f, keyText), []byte(strings.TrimRight(l, "\n")), []byte("glue "), uint32(len(l)))
		}
	})
	f.Fuzz(func(t *testing.T, raw, line, glue []byte, bit uint32) {
		var seed [keyBytes]byte
		copy(seed[:], raw)
		k := mustKey(t, hex.EncodeToString(seed[:]))
		signed, err := k.Sign(line)
		if err != nil {
			if signed != nil {
				t.Fatalf("Sign(%q) = %q, %v", line, signed, err)
			}
			return
		}
		if want := string(line[:len(line)-1]) + `,"auth":"` + macOf(k.Reveal(), line) + `"}`; string(signed) != want || len(signed) > maxSigned {
			t.Fatalf("Sign(%q) = %q, want %q", line, signed, want)
		}
		for _, text := range [][]byte{signed, append(bytes.Clone(glue), signed...), append(bytes.Clone(signed), " \r"...)} {
			if unsigned, ok := k.Verify(text); !ok || !bytes.Equal(unsigned, line) {
				t.Fatalf("Verify(%q) = %q, %v, want %q", text, unsigned, ok, line)
			}
		}
		want := Parser{}.Parse(line)
		if want != nil {
			want.Verified = true
		}
		tail := append(append(bytes.Clone(glue), '\n'), signed...)
		got, auth := Parser{}.ParseSigned(tail, k)
		if diff := cmp.Diff(want, got); diff != "" || auth != Verified {
			t.Fatalf("ParseSigned(%q): auth %q (-want +got):\n%s", tail, auth, diff)
		}
		forged := bytes.Clone(signed)
		forged[int(bit/8)%len(forged)] ^= 1 << (bit % 8)
		if unsigned, ok := k.Verify(forged); ok {
			t.Fatalf("Verify(%q) = %q, but %q was signed", forged, unsigned, signed)
		}
		seed[bit%keyBytes] ^= 1
		if unsigned, ok := mustKey(t, hex.EncodeToString(seed[:])).Verify(signed); ok {
			t.Fatalf("another key verified %q", unsigned)
		}
	})
}

// addVectors hands the tail of every vector to add.
func addVectors(f *testing.F, add func(tail string)) {
	for _, name := range vectorFiles {
		for _, v := range readVectors(f, name) {
			add(v.Tail)
		}
	}
}
