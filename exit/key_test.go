package exit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

const (
	keyText   = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	otherText = "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
)

func mustKey(t testing.TB, text string) Key {
	t.Helper()
	k, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustSign(t testing.TB, k Key, line string) string {
	t.Helper()
	signed, err := k.Sign([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// macOf is the MAC as the format defines it, without this package.
func macOf(keyText string, unsigned []byte) string {
	h := hmac.New(sha256.New, []byte(keyText))
	h.Write(unsigned)
	return hex.EncodeToString(h.Sum(nil))
}

// The MACs were computed by another implementation of HMAC-SHA256. The MAC is
// over the bytes as they are printed: both spellings of one text verify.
func TestSignPinned(t *testing.T) {
	k := mustKey(t, keyText)
	for line, mac := range map[string]string{
		`{"event":"exit","code":0}`: "8366c021dadb3ccab462e81db666ca08c43f4a94f11f0074fa71f9adb9633fb8",
		"{\"event\":\"exit\",\"url\":\"http://h/?a=1&b=<2>\",\"sep\":\"\u2028\"}":    "0e741a5622d0d1817917cf462fb93dbc0e140919b15e96f0c976e66bf656623e",
		`{"event":"exit","url":"http://h/?a=1\u0026b=\u003c2\u003e","sep":"\u2028"}`: "45c0b7baea0fdc4f5296e4fd4f756f1396ab1eb3216c38f06193459dac2a8dd1",
	} {
		want := line[:len(line)-1] + `,"auth":"` + mac + `"}`
		if got := mustSign(t, k, line); got != want {
			t.Errorf("Sign(%q) = %q, want %q", line, got, want)
		}
		if got, ok := k.Verify([]byte(want)); string(got) != line || !ok {
			t.Errorf("Verify(%q) = %q, %v, want %q, true", want, got, ok, line)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	k := mustKey(t, keyText)
	longest := `{"event":"exit","pad":"` + strings.Repeat("a", maxSigned-sealLen+1-len(`{"event":"exit","pad":""}`)) + `"}`
	if signed := mustSign(t, k, longest); len(signed) != maxSigned {
		t.Fatalf("the longest line is %d bytes signed, want %d", len(signed), maxSigned)
	}
	for name, line := range map[string]string{
		"empty":             "",
		"only the anchor":   anchor,
		"no anchor":         `{"code":0,"event":"exit"}`,
		"space before":      ` {"event":"exit"}`,
		"space after":       `{"event":"exit"} `,
		"newline after":     "{\"event\":\"exit\"}\n",
		"newline inside":    "{\"event\":\"exit\",\n\"code\":0}",
		"a second anchor":   `{"event":"exit","was":{"event":"exit"}}`,
		"cut":               `{"event":"exit","code":`,
		"text after":        `{"event":"exit"}}`,
		"two objects":       `{"event":"exit"}{}`,
		"auth":              `{"event":"exit","auth":"x"}`,
		"auth, null":        `{"event":"exit","auth":null}`,
		"auth, escaped":     `{"event":"exit","\u0061uth":1}`,
		"already signed":    mustSign(t, k, `{"event":"exit","code":0}`),
		"a byte too long":   strings.Replace(longest, `a"}`, `aa"}`, 1),
		"nested too deep":   `{"event":"exit","x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		"a control in text": "{\"event\":\"exit\",\"x\":\"\x00\"}",
	} {
		signed, err := k.Sign([]byte(line))
		if err == nil || signed != nil {
			t.Errorf("%s: Sign(%.60q) = %.60q, %v, want an error", name, line, signed, err)
		} else if strings.Contains(err.Error(), keyText) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	if signed, err := (Key{}).Sign([]byte(`{"event":"exit"}`)); err == nil || signed != nil {
		t.Errorf("Sign with the zero Key = %q, %v, want an error", signed, err)
	}
	// A nested auth key and a key that only folds to auth are no auth key.
	mustSign(t, k, `{"event":"exit","x":{"auth":1},"Auth":2}`)
}

func TestVerifyRefuses(t *testing.T) {
	k := mustKey(t, keyText)
	line := `{"event":"exit","code":0}`
	signed := mustSign(t, k, line)
	mac := macOf(keyText, []byte(line))
	seal := func(body, mac string) string { return body + `,"auth":"` + mac + `"}` }
	body := strings.TrimSuffix(line, "}")
	for name, text := range map[string]string{
		"empty":          "",
		"unsigned":       line,
		"another key":    mustSign(t, mustKey(t, otherText), line),
		"another line's": seal(`{"event":"exit","code":1`, mac),
		"fields in another order": seal(`{"event":"exit","turns":1,"code":0`,
			macOf(keyText, []byte(`{"event":"exit","code":0,"turns":1}`))),
		"upper-case hex":        seal(body, strings.ToUpper(mac)),
		"63 digits":             seal(body, mac[1:]),
		"65 digits":             seal(body, mac+"0"),
		"no digits":             seal(body, ""),
		"MAC of the raw key":    seal(body, macOf(string(mustHex(t, keyText)), []byte(line))),
		"MAC without the brace": seal(body, macOf(keyText, []byte(body))),
		"auth in another case":  strings.Replace(signed, "auth", "Auth", 1),
		"auth, escaped":         strings.Replace(signed, "auth", `\u0061uth`, 1),
		"space before the auth": strings.Replace(signed, `,"auth"`, `, "auth"`, 1),
		"a second auth":         seal(strings.TrimSuffix(signed, "}"), mac),
		"a second auth, fake":   seal(strings.TrimSuffix(signed, "}"), strings.Repeat("0", 64)),
		"text after":            signed + "x",
		"a NUL after":           signed + "\x00",
		"no anchor":             seal(`{"code":0`, macOf(keyText, []byte(`{"code":0}`))),
		"an anchor after":       seal(body+`,"x":{"event":"exit"`, mac),
		"anchor in another case": seal(`{"Event":"exit"`,
			macOf(keyText, []byte(`{"Event":"exit"}`))),
		"cut at the start": signed[1:],
		"cut at the end":   signed[:len(signed)-1],
	} {
		if unsigned, ok := k.Verify([]byte(text)); ok || unsigned != nil {
			t.Errorf("%s: Verify(%q) = %q, %v, want nil, false", name, text, unsigned, ok)
		}
	}
	for i := range signed {
		forged := []byte(signed)
		forged[i] ^= 1
		if unsigned, ok := k.Verify(forged); ok {
			t.Errorf("byte %d changed: Verify(%q) = %q, true", i, forged, unsigned)
		}
	}
	if unsigned, ok := (Key{}).Verify([]byte(seal(body, macOf("", []byte(line))))); ok || unsigned != nil {
		t.Error("the zero Key verified a line signed with an empty key")
	}
}

func TestVerifyAround(t *testing.T) {
	k := mustKey(t, keyText)
	line := `{"event":"exit","code":0}`
	signed := mustSign(t, k, line)
	for _, text := range []string{
		signed, signed + "\r", " \t" + signed + " \t\r", "Pulling image..." + signed, `{"msg":"half` + signed,
		strings.Repeat("\x00", 5000) + signed, "\xff\xfe" + signed, "\ufeff" + signed, "\x1b[6n" + signed,
		strings.Repeat(anchor, 1000) + signed, "10%\r99%\r" + signed, signed + signed,
	} {
		before := bytes.Clone([]byte(text))
		unsigned, ok := k.Verify([]byte(text))
		if string(unsigned) != line || !ok {
			t.Errorf("Verify(%.80q) = %q, %v, want %q, true", text, unsigned, ok, line)
		}
		if string(before) != text {
			t.Errorf("Verify(%.80q) changed its argument", text)
		}
	}
}

func TestParseKey(t *testing.T) {
	for _, text := range []string{
		"", keyText[1:], keyText + "0", keyText + "\n", " " + keyText, strings.ToUpper(keyText), "g" + keyText[1:],
		strings.Repeat("é", 32), strings.Repeat("\x00", 64),
	} {
		k, err := ParseKey(text)
		if err == nil || !k.IsZero() {
			t.Errorf("ParseKey(%q) = %v, %v, want the zero Key and an error", text, k, err)
		} else if len(text) > 40 && strings.Contains(err.Error(), text[1:40]) {
			t.Errorf("ParseKey(%q): the error repeats the text", text)
		}
	}
	if got := mustKey(t, keyText).Reveal(); got != keyText {
		t.Errorf("Reveal = %q, want %q", got, keyText)
	}
	a, b := NewKey(), NewKey()
	if a.Reveal() == b.Reveal() || a.IsZero() {
		t.Error("NewKey gave one key twice")
	}
	if back := mustKey(t, a.Reveal()); back.Reveal() != a.Reveal() {
		t.Error("a new key does not parse back")
	}
	if (Key{}).Reveal() != "" || !(Key{}).IsZero() {
		t.Error("the zero Key reveals something")
	}
}

// No way to print a Key, or a value that holds one, shows any of its text.
func TestKeyHides(t *testing.T) {
	k := mustKey(t, keyText)
	type open struct {
		Name string
		Key  Key
	}
	type closed struct {
		name string
		key  Key
	}
	type pointed struct{ key *Key }
	values := []any{
		k, &k, []Key{k}, map[string]Key{"k": k}, map[Key]string{k: "k"}, open{"n", k}, &open{"n", k}, closed{"n", k}, &closed{"n", k},
		pointed{&k}, []any{k}, fmt.Errorf("run: %v", k), struct{ any }{k},
	}
	var shown bytes.Buffer
	for _, v := range values {
		for _, verb := range "vdsqxXpTtbcoOUeEfFgG" {
			for _, flags := range []string{"", "+", "#", "-", " ", "0", "99", "+#"} {
				fmt.Fprintf(&shown, "%"+flags+string(verb)+"\n", v)
			}
		}
		fmt.Fprintln(&shown, v)
		for _, h := range []slog.Handler{slog.NewJSONHandler(&shown, nil), slog.NewTextHandler(&shown, nil)} {
			slog.New(h).Info("started", "value", v, slog.Group("g", "value", v))
		}
		text, _ := json.Marshal(v)
		shown.Write(text)
		text, _ = xml.Marshal(v)
		shown.Write(text)
		gob.NewEncoder(&shown).Encode(v)
		dump(&shown, reflect.ValueOf(v), 0)
	}
	panicked := func() (v any) {
		defer func() { v = recover() }()
		panic(k)
	}()
	fmt.Fprintln(&shown, panicked)
	for _, secret := range []string{keyText, keyText[:16], "30 30 30 31", "48 48 48 49", hex.EncodeToString([]byte(keyText[:8]))} {
		if i := bytes.Index(bytes.ToLower(shown.Bytes()), []byte(secret)); i >= 0 {
			t.Errorf("the key shows: ...%.200q", shown.Bytes()[max(i-100, 0):])
		}
	}
	if !bytes.Contains(shown.Bytes(), []byte(redacted)) {
		t.Error("nothing was printed")
	}
}

// dump writes every byte and text that reflection reaches from v.
func dump(w *bytes.Buffer, v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		dump(w, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			dump(w, v.Field(i), depth+1)
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			dump(w, v.Index(i), depth+1)
		}
	case reflect.Uint8:
		w.WriteByte(byte(v.Uint()))
	case reflect.String:
		w.WriteString(v.String())
	}
}

// countMACs makes k count its MACs and the bytes they cover.
func countMACs(k Key) (macs, size *int) {
	macs, size = new(int), new(int)
	k.secret.macs.New = func() any {
		return &mac{Hash: &countingHash{hmac.New(sha256.New, []byte(k.Reveal())), macs, size}}
	}
	return macs, size
}

type countingHash struct {
	hash.Hash
	macs, size *int
}

func (h *countingHash) Write(p []byte) (int, error) { *h.size += len(p); return h.Hash.Write(p) }
func (h *countingHash) Sum(b []byte) []byte         { *h.macs++; return h.Hash.Sum(b) }

// Work is linear: one MAC for each line that ends like a signed one and has an
// anchor, over that candidate alone.
func TestOneMACForEachCandidate(t *testing.T) {
	seal := `,"auth":"` + strings.Repeat("0", 64) + `"}`
	for name, tt := range map[string]struct {
		tail       string
		macs, size int
	}{
		"no candidate":            {strings.Repeat("log\n", 5000), 0, 0},
		"unsigned exit lines":     {strings.Repeat("{\"event\":\"exit\"}\n", 2000), 0, 0},
		"no anchor":               {strings.Repeat("{"+seal+"\n", 500), 0, 0},
		"one":                     {anchor + seal + "\nlog\n", 1, len(anchor) + 1},
		"text before":             {strings.Repeat("x", 60_000) + anchor + seal, 1, len(anchor) + 1},
		"anchors by the thousand": {strings.Repeat(anchor, 4000) + seal, 1, len(anchor) + 1},
		"seals by the thousand":   {anchor + strings.Repeat(seal, 800), 1, len(anchor) + 799*len(seal) + 1},
		"lines by the hundred":    {strings.Repeat(anchor+seal+"\n", 600), 600, 600 * (len(anchor) + 1)},
		"anchors on each line":    {strings.Repeat(strings.Repeat(anchor, 50)+seal+"\n", 70), 70, 70 * (len(anchor) + 1)},
		"one line of 64 KiB":      {anchor + strings.Repeat(" ", 65_000) + seal, 1, len(anchor) + 65_001},
	} {
		k := mustKey(t, keyText)
		macs, size := countMACs(k)
		if line, auth := (Parser{}).ParseSigned([]byte(tt.tail), k); line != nil || auth != Unverified {
			t.Errorf("%s: ParseSigned = %v, %q, want nothing", name, line, auth)
		}
		if *macs != tt.macs || *size != tt.size {
			t.Errorf("%s: %d MACs over %d bytes, want %d over %d", name, *macs, *size, tt.macs, tt.size)
		}
	}
}

func mustHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
