package spool

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/worker"
)

var someDigest = digestOf("some job")

func TestName(t *testing.T) {
	for _, tt := range []struct {
		name name
		want string
	}{
		{name{digest: someDigest}, "0000000000000000000.0.0.-.-." + someDigest},
		{
			name{at: 1764435600123456789, attempts: 2, stalls: 1, cancel: worker.CancelRequested, host: "0123456789abcdef", digest: someDigest},
			"1764435600123456789.2.1.requested.0123456789abcdef." + someDigest,
		},
		{name{digest: someDigest, reason: "stalled"}, "0000000000000000000.0.0.-.-." + someDigest + ".stalled"},
		{name{digest: someDigest, reason: "a.b/c\x00%"}, "0000000000000000000.0.0.-.-." + someDigest + ".a.b%2Fc%00%25"},
	} {
		if got := tt.name.String(); got != tt.want {
			t.Errorf("%+v.String() = %q, want %q", tt.name, got, tt.want)
		}
		if got, ok := parseName(tt.want); got != tt.name || !ok {
			t.Errorf("parseName(%q) = %+v, %v, want %+v", tt.want, got, ok, tt.name)
		}
	}
}

// TestLongestName has the largest of every field: with the prefix of an ended
// claim it must fit the name of a file.
func TestLongestName(t *testing.T) {
	n := name{
		at: math.MaxInt64, attempts: maxCount, stalls: maxCount, cancel: worker.CancelRequested,
		host: hostToken("h"), digest: someDigest, reason: exit.Reason(strings.Repeat("/", 1000)),
	}
	s := n.String()
	if len(endPrefix+s) > 255 {
		t.Errorf("the longest name has %d bytes with its prefix, want at most 255", len(endPrefix+s))
	}
	got, ok := parseName(s)
	n.reason = n.reason[:maxReason/3]
	if !ok || got != n {
		t.Errorf("parseName(%q) = %+v, %v, want %+v", s, got, ok, n)
	}
	if raise(maxCount) != maxCount {
		t.Errorf("raise(%d) = %d, want the same", maxCount, raise(maxCount))
	}
}

func TestNamesSortByTime(t *testing.T) {
	times := []int64{0, 9, 10, 1764435600123456789, 1764435600123456790, math.MaxInt64}
	var names []string
	for _, at := range times {
		names = append(names, name{at: at, digest: digestOf(strings.Join(names, " "))}.String())
	}
	if !slices.IsSorted(names) {
		t.Errorf("names in the order of their times are not sorted: %q", names)
	}
}

func TestParseNameRefuses(t *testing.T) {
	good := name{at: 5, digest: someDigest}.String()
	if _, ok := parseName(good); !ok {
		t.Fatalf("parseName(%q) = none, want a name", good)
	}
	for _, s := range []string{
		"", ".", "..", "x", good + ".", good + "x", "new-" + someDigest, "end-" + good, "." + good,
		strings.ToUpper(good),
		good[1:], "0" + good, "-" + good[1:], "+" + good[1:],
		strings.Replace(good, ".0.0.", ".00.0.", 1), strings.Replace(good, ".0.0.", ".0.-1.", 1),
		strings.Replace(good, ".0.0.", ".0.1000000000.", 1), strings.Replace(good, ".0.0.", ".0.", 1),
		strings.Replace(good, ".-.-.", ".?.-.", 1), strings.Replace(good, ".-.-.", ".-.host.", 1), strings.Replace(good, ".-.-.", "...", 1),
		good + ".%zz", good + ".%61", good + "." + strings.Repeat("x", maxReason+1),
		good[:len(good)-1], good + "0", strings.Replace(good, someDigest, someDigest[:63]+"g", 1),
	} {
		if n, ok := parseName(s); ok || n != (name{}) {
			t.Errorf("parseName(%q) = %+v, %v, want none", s, n, ok)
		}
	}
}

// FuzzName holds that a name is read only from the one text it makes, whatever
// file lies in a folder, and that every name comes back from its text.
func FuzzName(f *testing.F) {
	f.Add(name{at: 1764435600123456789, digest: someDigest, reason: "stalled"}.String(), int64(7), 1, 2, "requested", "h", "why not")
	f.Add("x", int64(0), 0, 0, "", "", "")
	f.Fuzz(func(t *testing.T, file string, at int64, attempts, stalls int, cancel, host, reason string) {
		if n, ok := parseName(file); ok && n.String() != file {
			t.Errorf("parseName(%q) = %+v, whose text is %q", file, n, n.String())
		}
		n := name{
			at: at & math.MaxInt64, attempts: int(uint(attempts) % (maxCount + 1)), stalls: int(uint(stalls) % (maxCount + 1)),
			host: hostToken(host), digest: digestOf(file), reason: exit.Reason(reason),
		}
		if isAnswer(worker.CancelAnswer(cancel)) {
			n.cancel = worker.CancelAnswer(cancel)
		}
		got, ok := parseName(n.String())
		if !strings.HasPrefix(string(n.reason), string(got.reason)) || len(reason) <= maxReason/3 && got.reason != n.reason {
			t.Errorf("reason %q came back as %q", n.reason, got.reason)
		}
		n.reason = got.reason
		if !ok || got != n {
			t.Errorf("parseName(%q) = %+v, %v, want %+v", n.String(), got, ok, n)
		}
		if strings.ContainsAny(n.String(), "/\x00") || len(endPrefix+n.String()) > 255 {
			t.Errorf("%q can't be the name of a file", n.String())
		}
	})
}
