package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/jobsize"
)

var (
	keptAt      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keptUntil   = keptAt.Add(time.Hour)
	defaultSize = jobsize.Size{Mem: 256, CPU: 100, Source: jobsize.FromDefault}
)

func someRun() KeptRun {
	return KeptRun{
		Job: "job-1", Kind: "issue", Image: "sha256:ab", Backend: "docker", User: "1234:1234",
		Size: jobsize.Size{Mem: 512, CPU: 50, Source: jobsize.FromProject}, Created: keptAt, Expires: keptUntil,
	}
}

// newKept returns the kept runs of a folder that has the directory of run r1.
func newKept(t *testing.T) (*KeptRuns, string) {
	t.Helper()
	folder := t.TempDir()
	makeRun(t, folder, "r1")
	k, err := NewKeptRuns(folder, defaultSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return k, folder
}

func makeRun(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, name, "deep", "er"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, name, "deep", "work"), "of the job")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inside names what a folder holds.
func inside(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestKeptRunOpensAsItWas(t *testing.T) {
	k, folder := newKept(t)
	unsized := someRun()
	unsized.Size = jobsize.Size{}
	makeRun(t, folder, "r2")
	for name, run := range map[string]KeptRun{"r1": someRun(), "r2": unsized} {
		if err := k.Retain(name, run); err != nil {
			t.Fatalf("Retain(%s) = %v", name, err)
		}
		got, err := k.Open(name, keptUntil.Add(-1))
		if err != nil {
			t.Fatalf("Open(%s) = %v", name, err)
		}
		if run.Size == (jobsize.Size{}) {
			run.Size = defaultSize
		}
		if diff := cmp.Diff(run, got.KeptRun); diff != "" || got.Dir != filepath.Join(folder, name) {
			t.Errorf("Open(%s) gave %q, differs (-want +got):\n%s", name, got.Dir, diff)
		}
		if err := got.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	if got := inside(t, folder); got != "r1 r1.json r2 r2.json" {
		t.Errorf("the folder holds %s", got)
	}
}

// A manifest is what was written down, whoever wrote it; what is none is never
// opened, and goes with its directory.
func TestManifests(t *testing.T) {
	const head = `{"jobId":"j","created":"2026-01-02T03:04:05Z","expires":"2026-01-02T04:04:05Z"`
	sized := func(size string) string { return head + `,"size":` + size + `}` }
	tests := []struct {
		name, text string
		want       *KeptRun
	}{
		{"old, without a size", head + `}`, &KeptRun{Job: "j", Created: keptAt, Expires: keptUntil, Size: defaultSize}},
		{"with what is not known", sized(`{"memMiB":64,"cpuCenti":25,"source":"env"}`)[:len(sized(`{"memMiB":64,"cpuCenti":25,"source":"env"}`))-1] + `,"dir":"/etc","path":"../x"}`,
			&KeptRun{Job: "j", Created: keptAt, Expires: keptUntil, Size: jobsize.Size{Mem: 64, CPU: 25, Source: jobsize.FromEnv}}},
		{"size of text", sized(`{"memMiB":"64","cpuCenti":25}`), nil},
		{"size of nothing", sized(`{}`), nil},
		{"size that is negative", sized(`{"memMiB":64,"cpuCenti":-1}`), nil},
		{"size past all memory", sized(`{"memMiB":9007199254740991,"cpuCenti":1}`), nil},
		{"key in another case", strings.Replace(head, "jobId", "JobID", 1) + `}`, nil},
		{"job id with a line break", strings.Replace(head, `"j"`, `"a\nb"`, 1) + `}`, nil},
		{"no instants", `{"jobId":"j"}`, nil},
		{"instant that is a number", strings.Replace(head, `"2026-01-02T04:04:05Z"`, `1`, 1) + `}`, nil},
		{"cut", head, nil},
		{"empty", "", nil},
		{"null", "null", nil},
		{"bytes", "\x7fELF\x00", nil},
		{"too long", head + `,"more":"` + strings.Repeat("x", maxManifest) + `"}`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k, folder := newKept(t)
			writeFile(t, filepath.Join(folder, "r1.json"), test.text)
			got, err := k.Open("r1", keptAt)
			if test.want != nil {
				if err != nil {
					t.Fatalf("Open = %v", err)
				}
				defer got.Close()
				if diff := cmp.Diff(*test.want, got.KeptRun); diff != "" || got.Dir != filepath.Join(folder, "r1") {
					t.Errorf("Open gave %q, differs (-want +got):\n%s", got.Dir, diff)
				}
				return
			}
			if !errors.Is(err, ErrNotKept) || got != nil || strings.Contains(err.Error(), folder) {
				t.Errorf("Open = %+v, %v, want ErrNotKept without a path", got, err)
			}
			if removed, err := k.Sweep(keptAt); err != nil || !slices.Equal(removed, []string{"r1"}) || inside(t, folder) != "" {
				t.Errorf("Sweep = %q, %v, left %q, want it removed", removed, err, inside(t, folder))
			}
		})
	}
}

// Whatever points outside is not followed, and only the pointer goes.
func TestKeptRunsStayInside(t *testing.T) {
	outside := t.TempDir()
	makeRun(t, outside, "precious")
	writeFile(t, filepath.Join(outside, "manifest"), `{"jobId":"j","created":"2026-01-02T03:04:05Z","expires":"2026-01-02T04:04:05Z"}`)
	k, folder := newKept(t)
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "precious"), "to-directory")
	if err := k.Retain("to-directory", someRun()); err == nil || exists(filepath.Join(folder, "to-directory")) {
		t.Errorf("Retain of a link = %v, want an error and the link removed", err)
	}
	link(filepath.Join(outside, "precious"), "swapped")
	writeFile(t, filepath.Join(folder, "swapped.json"), `{"jobId":"j","created":"2026-01-02T03:04:05Z","expires":"2026-01-02T04:04:05Z"}`)
	link(filepath.Join(outside, "manifest"), "r1.json")
	link(outside, "r1/out")
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"swapped", "r1", "fifo", "..", "../x", "/etc", "", "r1/deep", "r1.json"} {
		if got, err := k.Open(name, keptAt); !errors.Is(err, ErrNotKept) || got != nil {
			t.Errorf("Open(%q) = %+v, %v, want ErrNotKept", name, got, err)
		}
	}
	for _, name := range []string{"..", "../" + filepath.Base(outside), ".", "", "r1/deep", "r1.json"} {
		if err := k.Retain(name, someRun()); err == nil || !exists(filepath.Join(folder, "r1", "deep")) {
			t.Errorf("Retain(%q) = %v, want it refused and nothing removed", name, err)
		}
	}
	removed, err := k.Sweep(keptAt)
	if slices.Sort(removed); err != nil || !slices.Equal(removed, []string{"fifo", "r1", "swapped"}) || inside(t, folder) != "" {
		t.Errorf("Sweep = %q, %v, left %q, want all gone", removed, err, inside(t, folder))
	}
	if !exists(filepath.Join(outside, "precious", "deep", "work")) || !exists(filepath.Join(outside, "manifest")) {
		t.Error("something outside was removed")
	}
}

// What can't be kept is removed, with whatever was written of its manifest.
func TestNotKeptIsRemoved(t *testing.T) {
	tests := map[string]func(t *testing.T, folder string, run *KeptRun){
		"no job":         func(_ *testing.T, _ string, r *KeptRun) { r.Job = "" },
		"not UTF-8":      func(_ *testing.T, _ string, r *KeptRun) { r.Image = "\xff" },
		"line break":     func(_ *testing.T, _ string, r *KeptRun) { r.User = "0\n0" },
		"no expiry":      func(_ *testing.T, _ string, r *KeptRun) { r.Expires = r.Created },
		"no time at all": func(_ *testing.T, _ string, r *KeptRun) { r.Created = time.Time{} },
		"half a size":    func(_ *testing.T, _ string, r *KeptRun) { r.Size.CPU = 0 },
		"too long":       func(_ *testing.T, _ string, r *KeptRun) { r.Kind = strings.Repeat("x", maxManifest) },
		"manifest's name is a directory's": func(t *testing.T, folder string, _ *KeptRun) {
			if err := os.Mkdir(filepath.Join(folder, "r1.json"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"kept before": func(t *testing.T, folder string, r *KeptRun) {
			writeFile(t, filepath.Join(folder, "r1.json"), "old")
			writeFile(t, filepath.Join(folder, "r1.json.new"), "half")
			r.Job = ""
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			k, folder := newKept(t)
			run := someRun()
			change(t, folder, &run)
			if err := k.Retain("r1", run); err == nil || strings.Contains(err.Error(), folder) {
				t.Errorf("Retain = %v, want an error without a path", err)
			}
			if got := inside(t, folder); got != "" {
				t.Errorf("the folder holds %q, want nothing", got)
			}
		})
	}
	k, _ := newKept(t)
	if err := k.Retain("absent", someRun()); err == nil {
		t.Error("Retain of no directory = nil, want an error")
	}
}

func TestSweepKept(t *testing.T) {
	k, folder := newKept(t)
	for _, name := range []string{"r2", "r3", "running"} {
		makeRun(t, folder, name)
	}
	later := someRun()
	later.Expires = keptUntil.Add(time.Hour)
	for name, run := range map[string]KeptRun{"r1": someRun(), "r2": someRun(), "r3": later} {
		if err := k.Retain(name, run); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(folder, "running.json.new"), "of one that dies just now")
	writeFile(t, filepath.Join(folder, "gone.json.new"), "of one that died")
	writeFile(t, filepath.Join(folder, "gone.json"), `{"jobId":"j","created":"2026-01-02T03:04:05Z","expires":"2036-01-02T04:04:05Z"}`)
	writeFile(t, filepath.Join(folder, "notes"), "")

	open, err := k.Open("r2", keptAt)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := k.Sweep(keptUntil)
	if slices.Sort(removed); err != nil || !slices.Equal(removed, []string{"gone", "r1"}) {
		t.Errorf("Sweep = %q, %v, want what has expired and is not open", removed, err)
	}
	if got := inside(t, folder); got != "notes r2 r2.json r3 r3.json running running.json.new" {
		t.Errorf("the folder holds %s", got)
	}
	if _, err := k.Open("r2", keptUntil); !errors.Is(err, ErrNotKept) {
		t.Errorf("Open of what has expired = %v, want ErrNotKept", err)
	}
	// Retained once more before it is closed, it stays.
	if err := k.Retain("r2", later); err != nil {
		t.Fatal(err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err := k.Sweep(keptUntil); err != nil || len(removed) != 0 {
		t.Errorf("Sweep = %q, %v, want nothing", removed, err)
	}
	removed, err = k.Sweep(later.Expires)
	if slices.Sort(removed); err != nil || !slices.Equal(removed, []string{"r2", "r3"}) || inside(t, folder) != "notes running running.json.new" {
		t.Errorf("Sweep = %q, %v, left %q", removed, err, inside(t, folder))
	}
}

func TestNewKeptRunsRefuses(t *testing.T) {
	if k, err := NewKeptRuns(filepath.Join(t.TempDir(), "absent"), defaultSize); err == nil || k != nil {
		t.Errorf("NewKeptRuns of no folder = %v, %v", k, err)
	}
	if k, err := NewKeptRuns(t.TempDir(), jobsize.Size{}); err == nil || k != nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("NewKeptRuns without a size = %v, %v", k, err)
	}
}
