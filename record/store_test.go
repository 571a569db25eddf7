package record

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

func sampleRun(id string, attempt int) Run {
	code := int64(0)
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	return Run{
		JobID: id, Attempt: attempt, Kind: "local", Folder: "/home/alice/site", Host: "build-1", Project: "p1",
		StartedAt: start, EndedAt: start.Add(time.Minute), Outcome: Completed, ExitCode: &code,
		Size:     jobsize.Size{Mem: 512, CPU: 50, Source: jobsize.FromEnv},
		Capacity: &Capacity{Slots: ptr(int64(4)), MemMiB: Limit{jobsize.Off()}},
		Line:     &exit.Line{Tokens: &exit.Tokens{Total: 1e21}, Turns: ptr(int64(3))},
		Job:      Job{Created: start},
	}
}

func write(t *testing.T, s *Store, r Record) {
	t.Helper()
	if err := s.Write(r); err != nil {
		t.Fatal(err)
	}
}

func checkRead(t *testing.T, s *Store, want Record) {
	t.Helper()
	got, err := s.Read(want.JobID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Read(%q) = %+v, %v, want %+v", want.JobID, got, err, want)
	}
}

func checkNoTemp(t *testing.T, dir string) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if len(left) > 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, id := range []string{"j1", "a:b", "<ü>&\u2028", strings.Repeat("x", 1024), "repeat:n:1"} {
		s := &Store{Dir: filepath.Join(t.TempDir(), "new")}
		first, second := Build(sampleRun(id, 1)), Build(sampleRun(id, 2))
		write(t, s, first)
		checkRead(t, s, first)
		write(t, s, second)
		checkRead(t, s, second)
		checkNoTemp(t, s.Dir)
	}
}

func TestWrittenKeys(t *testing.T) {
	r := Build(sampleRun("j1", 1))
	line, err := r.line()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := value(t, bytes.TrimSpace(line)).Object()
	last := -1
	for _, m := range o {
		at, ok := position[string(m.Key)]
		if !ok || at <= last {
			t.Errorf("key %q is unknown or out of order", m.Key)
		}
		last = at
	}
	if o.Get("progress").Exists() || !o.Get("reason").IsNull() || o.Get("target").Raw() == nil || last != len(keys)-1 {
		t.Errorf("wrote %s: want progress absent, reason null and v last", line)
	}
	if bytes.Contains(line, []byte("alice")) {
		t.Errorf("wrote %s: it holds the folder's path", line)
	}
	if v := string(o.Get("tokens").Raw()); v != `{"total":1e+21}` {
		t.Errorf("tokens = %s, want them as JavaScript prints them", v)
	}
}

// Build with an object only for progress, a failure's library message and a
// number that JSON can't say.
func TestBuildRefusesText(t *testing.T) {
	run := sampleRun("j1", 1)
	run.Outcome, run.Reason = Failed, "open /home/alice: no such file"
	run.Progress = []byte(`{"turns":2,"tools":{"bash":1,"rm -rf":9}}`)
	inf := 1e308
	run.Line.Tokens.Total = inf * 10
	r := Build(run)
	if r.Reason != WorkerError || r.Tokens != nil || r.Progress == nil || *r.Progress.Tools != (Tools{Bash: 1}) {
		t.Errorf("Build = %+v", r)
	}
	if run.Outcome = Policy; Build(run).Reason != "" {
		t.Errorf("reason of a result = %q, want none", Build(run).Reason)
	}
	run.Reason, run.Reasons = "ours", []exit.Reason{"ours"}
	if got := Build(run).Reason; got != "ours" {
		t.Errorf("an embedder's reason = %q, want ours", got)
	}
}

func TestIDsThatShareAName(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	a, b := Build(sampleRun("a:b", 1)), Build(sampleRun("a_b", 1))
	write(t, s, a)
	write(t, s, b)
	checkRead(t, s, a)
	checkRead(t, s, b)
	if _, err := s.Read("a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of a third id = %v, want not exist", err)
	}
}

func TestRefusedIDs(t *testing.T) {
	for _, id := range []string{"", ".", "..", strings.Repeat("x", 1025), "\xff"} {
		if err := (&Store{Dir: t.TempDir()}).Write(Record{JobID: id}); err == nil {
			t.Errorf("Write(%q) = nil, want an error", id)
		}
	}
}

// Files that a power cut, a dead writer or an attacker leaves at the name.
func TestUnparseable(t *testing.T) {
	good := Build(sampleRun("good", 1))
	line, _ := good.line()
	for name, text := range map[string][]byte{
		"zeros": make([]byte, 4096), "empty": {}, "cut": line[:len(line)/2], "tail of zeros": append(bytes.Clone(line), 0, 0),
		"list": []byte("[]"), "null": []byte("null"),
	} {
		s := &Store{Dir: t.TempDir()}
		write(t, s, good)
		if err := os.WriteFile(filepath.Join(s.Dir, "j.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var bad *UnparseableError
		if _, err := s.Read("j"); !errors.As(err, &bad) || bad.File != "j.json" {
			t.Errorf("%s: Read = %v, want unparseable", name, err)
		}
		sum, err := Summarize(s.All())
		if err != nil || sum.Records != 1 || sum.Unparseable != 1 || sum.RunTime != time.Minute {
			t.Errorf("%s: Summarize = %+v, %v", name, sum, err)
		}
		again := Build(sampleRun("j", 1))
		write(t, s, again)
		checkRead(t, s, again)
	}
}

func TestPlantedAtTheName(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		for kind, plant := range map[string]func(outside, name string) error{
			"symlink": os.Symlink, "hard link": os.Link,
			"fifo": func(_, name string) error { return syscall.Mkfifo(name, 0o600) },
		} {
			dir := t.TempDir()
			outside := filepath.Join(t.TempDir(), "outside")
			name := filepath.Join(dir, "j.json")
			if err := errors.Join(os.WriteFile(outside, []byte("mine"), 0o600), plant(outside, name)); err != nil {
				t.Fatal(err)
			}
			s := &Store{Dir: dir}
			if inPlace { // no temporary name is free
				taken := func() string { return "000000000000" }
				s.faults.random = taken
				temp := (atomicFile{dir: dir, name: "j.json"}).path() + tempSuffix(taken())
				if err := os.WriteFile(temp, []byte("theirs"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := Build(sampleRun("j", 1))
			err := s.Write(r)
			if (err != nil) != inPlace {
				t.Errorf("%s, in place %v: Write = %v", kind, inPlace, err)
			}
			if got, _ := os.ReadFile(outside); string(got) != "mine" {
				t.Errorf("%s, in place %v: the file outside now says %q", kind, inPlace, got)
			}
			if !inPlace {
				checkRead(t, s, r)
			}
		}
	}
}

func tempSuffix(random string) string { return "." + pid() + "." + random + tempExt }

func TestTakenTempNameWritesInPlace(t *testing.T) {
	var log bytes.Buffer
	s := &Store{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s.faults.random = func() string { return "0123456789ab" }
	temp := filepath.Join(s.Dir, "j.json"+tempSuffix("0123456789ab"))
	if err := os.WriteFile(temp, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt < 3; attempt++ {
		r := Build(sampleRun("j", attempt))
		write(t, s, r)
		checkRead(t, s, r)
	}
	if got, _ := os.ReadFile(temp); string(got) != "theirs" {
		t.Errorf("the taken file now says %q", got)
	}
	if !strings.Contains(log.String(), "record_written_in_place job=j code=EEXIST") {
		t.Errorf("log = %s", log.String())
	}
}

func mount(t *testing.T, source, dir, fstype string, flags uintptr, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		lab.Missing(t, "root", "run the tests as root to mount a file system")
	}
	if err := mountFS(source, dir, fstype, flags, data); err != nil {
		lab.Missing(t, "root", "mount: "+err.Error())
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mount(t, "none", dir, "tmpfs", 0, "size=64k")
	s := &Store{Dir: dir}
	old := Build(sampleRun("j", 1))
	write(t, s, old)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	filler.Close()
	r := Build(sampleRun("j", 2))
	write(t, s, r) // in place: it fits the old record's page
	checkRead(t, s, r)
	other := s.Write(Build(sampleRun("k", 1)))
	if !errors.Is(other, syscall.ENOSPC) {
		t.Errorf("Write of another job = %v, want ENOSPC", other)
	}
	if _, err := s.Read("k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read after it = %v, want no file left", err)
	}
	checkNoTemp(t, dir)
	l := s.OpenLog("k", LogOptions{Enabled: true})
	defer l.Close()
	if n, err := l.Write(make([]byte, 8192)); n != 8192 || err != nil {
		t.Errorf("log Write on a full disk = %d, %v, want all and nil", n, err)
	}
}

func TestTwoWriters(t *testing.T) {
	s := &Store{Dir: t.TempDir(), NoSync: true}
	var writers sync.WaitGroup
	for attempt := 1; attempt <= 2; attempt++ {
		writers.Go(func() {
			r := Build(sampleRun("j", attempt))
			for range 200 {
				if err := s.Write(r); err != nil {
					t.Error(err)
				}
				if _, err := s.Read("j"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	checkNoTemp(t, s.Dir)
}

func TestPrevious(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for _, id := range []string{"repeat:n:t:100", "manual:n:t:200", "repeat:n:t:300", "repeat:other:250", "j"} {
		write(t, s, Build(sampleRun(id, 1)))
	}
	os.WriteFile(filepath.Join(s.Dir, "x.json"), nil, 0o600)
	got, bad, err := s.Previous("n:t", time.UnixMilli(300))
	if err != nil || bad != 1 || got == nil || got.JobID != "manual:n:t:200" {
		t.Errorf("Previous = %+v, %d, %v, want the slot 200 and 1", got, bad, err)
	}
}

func TestReap(t *testing.T) {
	old := time.Now().Add(-2 * time.Hour)
	temp := "j.json.12.0123456789ab.tmp"
	for _, retention := range []time.Duration{0, time.Hour} {
		s := &Store{Dir: t.TempDir(), Retention: retention}
		for _, name := range []string{"a.json", "a.log", temp, "other.tmp", "j.json.x.0123456789ab.tmp", "note.txt"} {
			p := filepath.Join(s.Dir, name)
			if err := errors.Join(os.WriteFile(p, nil, 0o600), os.Chtimes(p, old, old)); err != nil {
				t.Fatal(err)
			}
		}
		os.Mkdir(filepath.Join(s.Dir, "x.log"), 0o700)
		os.Chtimes(filepath.Join(s.Dir, "x.log"), old, old)
		os.WriteFile(filepath.Join(s.Dir, "new.log"), nil, 0o600)
		if err := s.Reap(t.Context()); err != nil {
			t.Fatal(err)
		}
		entries, _ := os.ReadDir(s.Dir)
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		want := []string{"a.json", "a.log", "j.json.x.0123456789ab.tmp", "new.log", "note.txt", "other.tmp", "x.log"}
		if retention > 0 {
			want = want[2:]
		}
		if !reflect.DeepEqual(left, want) {
			t.Errorf("retention %v: Reap left %v, want %v", retention, left, want)
		}
	}
}

func TestRunLog(t *testing.T) {
	for name, c := range map[string]struct {
		options LogOptions
		want    string
	}{
		"off": {LogOptions{}, ""}, "suppressed": {LogOptions{Enabled: true, Suppressed: true}, ""},
		"on": {LogOptions{Enabled: true}, "hello\nworld\n"}, "capped": {LogOptions{Enabled: true, MaxBytes: 8}, "hello\nwo\n[log cut at 8 bytes]\n"},
	} {
		s := &Store{Dir: t.TempDir()}
		l := s.OpenLog("j", c.options)
		l.Write([]byte("hello\n"))
		l.Write([]byte("world\n"))
		l.Close()
		got, _ := os.ReadFile(filepath.Join(s.Dir, "j.log"))
		if string(got) != c.want {
			t.Errorf("%s: log = %q, want %q", name, got, c.want)
		}
	}
}

func TestOldRecords(t *testing.T) {
	s := &Store{Dir: filepath.Join("testdata", "v1")}
	n := 0
	for r, err := range s.All() {
		if err != nil || !r.Readable() || r.JobID == "" || r.Outcome == "" {
			t.Errorf("record %+v: %v", r, err)
		}
		n++
	}
	if n == 0 {
		t.Error("no old record in testdata/v1")
	}
}

func TestNewerVersionReadsByCore(t *testing.T) {
	r, err := Parse([]byte(`{"jobId":"j","attempt":2,"outcome":"parked","host":"h1","turns":3,"v":2}`))
	if err != nil || r.Readable() || r.Turns != nil || r.Host != "h1" || *r.Attempt != 2 || r.Outcome != "parked" {
		t.Errorf("Parse = %+v, %v, want the core alone", r, err)
	}
}
