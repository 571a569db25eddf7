package record

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/exit"
)

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		run  Run
		want exit.Word
	}{
		{Run{Kind: "local", Folder: "/home/alice/site"}, "local:site"},
		{Run{Kind: "local", Folder: "/home/alice/site/"}, "local:site"},
		{Run{Kind: "local", Folder: "site"}, "local:site"},
		{Run{Kind: "local", Folder: "/home/alice/my site"}, "local:my site"},
		{Run{Kind: "local", Folder: "/home/alice/new\nline"}, ""},
		{Run{Kind: "local", Folder: "/home/alice/$(id)"}, ""},
		{Run{Kind: "github", Repo: "owner/repo", Number: 7}, "owner/repo#7"},
		{Run{Kind: "github", Repo: "owner/repo", Number: 7, MergeRequest: true}, "owner/repo#7"},
		{Run{Kind: "gitlab", Repo: "group/sub/repo", Number: 7}, "group/sub/repo#7"},
		{Run{Kind: "gitlab", Repo: "group/sub/repo", Number: 7, MergeRequest: true}, "group/sub/repo!7"},
		{Run{Kind: "forgejo", Repo: "owner/repo", Number: 1}, "owner/repo#1"},
		{Run{Kind: "azure", Repo: "org/project/repo", Number: 1}, "org/project/repo#1"},
		{Run{Kind: "github", Repo: "owner/repo"}, ""},
		{Run{Kind: "github", Repo: "owner/repo", Number: -1}, ""},
		{Run{Kind: "github", Number: 7}, ""},
		{Run{Kind: "github", Repo: "../repo", Number: 7}, ""},
		{Run{Kind: "github", Repo: "owner//repo", Number: 7}, ""},
		{Run{Kind: "github", Repo: "owner/re po", Number: 7}, ""},
		{Run{Kind: "bitbucket", Repo: "owner/repo", Number: 7}, ""}, // no kind that is known
		{Run{Repo: "owner/repo", Number: 7}, ""},
	} {
		if got := Build(c.run).Target; got != c.want {
			t.Errorf("Build(%q, folder %q, %q, %d).Target = %q, want %q", c.run.Kind, c.run.Folder, c.run.Repo, c.run.Number, got, c.want)
		}
	}
}

func TestBuildDollars(t *testing.T) {
	for _, c := range []struct {
		in   Dollars
		kept bool
	}{
		{Dollars{0, 0, "unreserved", ""}, true}, {Dollars{5, 4, "metered", "metered"}, true},
		{Dollars{5, 5, "floor", "floor"}, true}, {Dollars{5, 0, "refunded", "refunded"}, true},
		{Dollars{1<<53 - 1, 1, "metered", ""}, true}, {Dollars{1 << 53, 1, "metered", ""}, false},
		{Dollars{-1, 0, "metered", ""}, false}, {Dollars{0, -1, "metered", ""}, false},
		{Dollars{0, 0, "", ""}, false}, {Dollars{0, 0, "free", ""}, false},
		{Dollars{0, 0, "metered", "unreserved"}, false}, {Dollars{0, 0, "metered", "free"}, false},
	} {
		var want *Dollars
		if c.kept {
			want = &c.in
		}
		if got := Build(Run{JobID: "j", Dollars: &c.in}).Dollars; !cmp.Equal(got, want) {
			t.Errorf("Build(%+v).Dollars = %+v, want %+v", c.in, got, want)
		}
	}
}

func TestBuildPlan(t *testing.T) {
	for outcome, kept := range map[exit.Word]bool{"applied": true, "duplicate": true, "refused": true, "": false, "Applied": false, "other": false} {
		got := Build(Run{JobID: "j", Plan: &Plan{outcome}}).Plan
		if (got != nil) != kept || kept && got.Outcome != outcome {
			t.Errorf("Build(plan %q).Plan = %+v, want it kept: %v", outcome, got, kept)
		}
	}
}

func TestBuildCanary(t *testing.T) {
	long := exit.Word(strings.Repeat("j", 200))
	for _, c := range []struct {
		in   Canary
		kept bool
	}{
		{Canary{"j:1", "coder", "anthropic/opus"}, true}, {Canary{long, "a_b-1", "p/m:1.2@x"}, true}, {Canary{long, "coder", "p/org/m"}, true},
		{Canary{long + "j", "coder", "p/m"}, false}, {Canary{"", "coder", "p/m"}, false}, {Canary{"a b", "coder", "p/m"}, false},
		{Canary{"j", "inherit", "p/m"}, false}, {Canary{"j", "Coder", "p/m"}, false}, {Canary{"j", "", "p/m"}, false},
		{Canary{"j", "coder", "m"}, false}, {Canary{"j", "coder", "/m"}, false}, {Canary{"j", "coder", "p/"}, false}, {Canary{"j", "coder", "p/m x"}, false},
	} {
		var want *Canary
		if c.kept {
			want = &c.in
		}
		if got := Build(Run{JobID: "j", Canary: &c.in}).Canary; !cmp.Equal(got, want) {
			t.Errorf("Build(%+v).Canary = %+v, want %+v", c.in, got, want)
		}
	}
}

func TestBuildPackageCanary(t *testing.T) {
	for _, c := range []struct {
		in   PackageCanary
		kept bool
	}{
		{PackageCanary{"left-pad", "1.3.0", "loaded"}, true}, {PackageCanary{"@scope/name", "1.0.0-rc.1+build.5", "failed"}, true},
		{PackageCanary{"a", "0.0.0", ""}, true}, {PackageCanary{exit.Word(strings.Repeat("a", 214)), "1.0.0", ""}, true},
		{PackageCanary{exit.Word(strings.Repeat("a", 215)), "1.0.0", ""}, false}, {PackageCanary{"Left", "1.0.0", ""}, false},
		{PackageCanary{".a", "1.0.0", ""}, false}, {PackageCanary{"_a", "1.0.0", ""}, false}, {PackageCanary{"@scope", "1.0.0", ""}, false},
		{PackageCanary{"scope/name", "1.0.0", ""}, false}, {PackageCanary{"@a/b/c", "1.0.0", ""}, false}, {PackageCanary{"a b", "1.0.0", ""}, false},
		{PackageCanary{"a", "^1.0.0", ""}, false}, {PackageCanary{"a", "1.0", ""}, false}, {PackageCanary{"a", "latest", ""}, false},
		{PackageCanary{"a", "1.0.x", ""}, false}, {PackageCanary{"a", "01.0.0", ""}, false}, {PackageCanary{"a", "1.0.0-", ""}, false},
		{PackageCanary{"a", "1.0.0+", ""}, false}, {PackageCanary{"a", "v1.0.0", ""}, false}, {PackageCanary{"a", "", ""}, false},
	} {
		var want *PackageCanary
		if c.kept {
			want = &c.in
		}
		if got := Build(Run{JobID: "j", PackageCanary: &c.in}).PackageCanary; !cmp.Equal(got, want) {
			t.Errorf("Build(%+v).PackageCanary = %+v, want %+v", c.in, got, want)
		}
	}
	// A load that is no word of the set is not known, and no fault of the rest.
	if got := Build(Run{JobID: "j", PackageCanary: &PackageCanary{"a", "1.0.0", "crashed"}}).PackageCanary; got == nil || got.Load != "" {
		t.Errorf("Build with the load crashed: PackageCanary = %+v, want no load", got)
	}
}

func TestInstant(t *testing.T) {
	for text, want := range map[Instant]string{ // "" where the text is no instant
		"2026-05-01T10:00:00.000Z":      "2026-05-01T10:00:00.000Z",
		"2026-05-01":                    "2026-05-01T00:00:00.000Z",
		"2026-05-01T10:00:00Z":          "2026-05-01T10:00:00.000Z",
		"2026-05-01T10:00:00.1Z":        "2026-05-01T10:00:00.100Z",
		"2026-05-01T10:00:00.1239999Z":  "2026-05-01T10:00:00.123Z",
		"2026-05-01T10:00:00+02:00":     "2026-05-01T08:00:00.000Z",
		"2026-05-01T10:00:00.5-23:59":   "2026-05-02T09:59:00.500Z",
		"2024-02-29T00:00:00Z":          "2024-02-29T00:00:00.000Z",
		"9999-12-31T23:59:59.999Z":      "9999-12-31T23:59:59.999Z",
		"2025-02-29T00:00:00Z":          "",
		"2026-04-31":                    "",
		"2026-13-01":                    "",
		"2026-05-01T24:00:00Z":          "",
		"2026-05-01T10:60:00Z":          "",
		"2026-05-01T10:00:60Z":          "",
		"2026-05-01T10:00:00+24:00":     "",
		"2026-05-01T10:00:00+02:60":     "",
		"2026-05-01T10:00:00+0200":      "",
		"2026-05-01T10:00:00":           "",
		"2026-05-01T10:00Z":             "",
		"2026-05-01T10:00:00.Z":         "",
		"2026-05-01T10:00:00,5Z":        "",
		"2026-05-01t10:00:00z":          "",
		"2026-05-01 10:00:00Z":          "",
		" 2026-05-01":                   "",
		"2026-05-01Z":                   "",
		"2026-5-1":                      "",
		"+002026-05-01T10:00:00.000Z":   "",
		"1777629600000":                 "",
		"":                              "",
		"2026-05-01T10:00:00.000Z\n":    "",
		"2026-05-01T1\u0660:00:00.000Z": "",
	} {
		got, ok := text.Time()
		if ok != (want != "") || ok && got.UTC().Format(canonicalLayout) != want {
			t.Errorf("Instant(%q).Time() = %v, %v, want %q", text, got, ok, want)
		}
		if got, want := text.Canonical(), want != "" && string(text) == want; got != want {
			t.Errorf("Instant(%q).Canonical() = %v, want %v", text, got, want)
		}
	}
}

func TestAt(t *testing.T) {
	for ms, want := range map[int64]Instant{0: "1970-01-01T00:00:00.000Z", maxMillis: "9999-12-31T23:59:59.999Z", maxMillis + 1: "", -1: ""} {
		if got := At(time.UnixMilli(ms)); got != want {
			t.Errorf("At(%d ms) = %q, want %q", ms, got, want)
		}
	}
	if got := At(time.Time{}); got != "" {
		t.Errorf("At(the zero time) = %q, want none", got)
	}
}

// What only a verified line may give is not taken from any other.
func TestBuildTakesFromTheLineWhatItMayGive(t *testing.T) {
	for _, verified := range []bool{false, true} {
		run := sampleRun("j", 1)
		run.Line.Verified = verified
		run.Line.Loaded = &exit.Loaded{Raw: []byte(`{"packages":[{"name":"a","count":1}]}`)}
		r := Build(run)
		if r.Turns == nil || (r.Loaded != nil) != verified {
			t.Errorf("verified %v: Build = turns %v and loaded %v", verified, r.Turns, r.Loaded)
		}
	}
}

func TestPlaceholderNamesOnlyInASandbox(t *testing.T) {
	run := sampleRun("j", 1)
	run.Bundle = &Bundle{ID: "b", Variables: []string{"A"}, Placeholders: ptr(int64(1)), Plain: ptr(int64(0)), PlaceholderNames: []string{"A"}}
	for backend, want := range map[string][]string{"local": nil, "openshell": {"A"}, "openshell-bind": {"A"}} {
		run.Backend = backend
		if got := Build(run).Bundle.PlaceholderNames; !reflect.DeepEqual(got, want) {
			t.Errorf("backend %s: placeholder names = %v, want %v", backend, got, want)
		}
	}
}

// A newer build adds a field and keeps the version: this one reads all it knows.
func TestAddedFieldIsReadByAnOldBuild(t *testing.T) {
	want := Build(sampleRun("j", 1))
	line, err := want.line()
	if err != nil {
		t.Fatal(err)
	}
	added := bytes.Replace(line, []byte(`"kind":`), []byte(`"added":{"v":2,"jobId":"k"},"kind":`), 1)
	if got, err := Parse(added); err != nil || !got.Readable() || !reflect.DeepEqual(got, want) {
		t.Errorf("Parse(%s) = %+v, %v, want %+v", added, got, err, want)
	}
}
