package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/worker"
)

func submitTo(t testing.TB, s *Spool, job worker.Job) {
	t.Helper()
	if err := s.Submit(t.Context(), job); err != nil {
		t.Fatalf("Submit(%.64q) = %v, want no error", job.ID, err)
	}
}

func nextID(t testing.TB, s *Spool) worker.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := s.Next(ctx)
	if err != nil {
		t.Fatalf("Next = %v, want a job", err)
	}
	return d
}

// fileOf returns the only file of a folder.
func fileOf(t *testing.T, s *Spool, folder string) string {
	t.Helper()
	files := mustList(t, s.path(folder))
	if len(files) != 1 {
		t.Fatalf("%s holds %q, want one file", folder, files)
	}
	return s.path(folder, files[0])
}

// TestGarbage puts what is no job wherever jobs lie. It must end in aside, be
// named in the log, and hold up nothing.
func TestGarbage(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	valid := func(id string) string { return name{at: 1, digest: digestOf(id)}.String() }
	head := func(id string, data int) string {
		line, _ := headerOf(worker.Job{ID: id, Data: bytes.Repeat([]byte("1"), data)})
		return string(line)
	}
	garbage := map[string]func(path string) error{
		"ready/notes.txt":                        write("hello"),
		"ready/" + valid("empty"):                write(""),
		"ready/" + valid("torn"):                 write(`{"job":{"id":"to`),
		"ready/" + valid("short"):                write(head("short", 5) + "12"),
		"ready/" + valid("long"):                 write(head("long", 1) + "12"),
		"ready/" + valid("not json"):             write(head("not json", 2) + "{]"),
		"ready/" + valid("other"):                write(head("another", 0)),
		"ready/" + valid("zeros"):                write(strings.Repeat("\x00", 5000)),
		"ready/" + valid("no line"):              write(strings.Repeat("x", 2*maxHeader)),
		"ready/" + valid("folder"):               func(p string) error { return os.Mkdir(p, 0o700) },
		"ready/" + valid("pipe"):                 func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"ready/" + valid("link"):                 func(p string) error { return os.Symlink("/etc/passwd", p) },
		"ready/" + valid("dangling"):             func(p string) error { return os.Symlink("nowhere", p) },
		"delayed/x":                              write(""),
		"dead/x":                                 write(""),
		"dead/" + valid("torn dead"):             write("{"),
		"claims/x":                               write(""),
		"claims/.hidden":                         func(p string) error { return os.Mkdir(p, 0o700) },
		"claims/0123456789ab":                    write(""),
		"instances/x":                            write(""),
		"ready/" + strings.Repeat("n", 255):      write(""),
		"ready/" + valid("first") + ".a%2fb":     write("lower-case escape"),
		"ready/" + "new-" + digestOf("misplace"): write(""),
	}
	for path, make := range garbage {
		if err := make(s.path(path)); err != nil {
			t.Fatal(err)
		}
	}
	submitTo(t, s, worker.Job{ID: "good"})
	d := nextID(t, s)
	if d.Job().ID != "good" {
		t.Errorf("Next = job %q, want good", d.Job().ID)
	}
	for dead, err := range s.Dead(t.Context()) {
		t.Errorf("Dead = %+v, %v, want none", dead, err)
	}
	s.sweep()
	aside := mustList(t, s.path(asideFolder))
	if len(aside) != len(garbage) {
		t.Errorf("aside holds %d files, want %d: %q", len(aside), len(garbage), aside)
	}
	if n := strings.Count(log.String(), "spool_set_aside "); n != len(garbage) {
		t.Errorf("the log names %d files, want %d:\n%s", n, len(garbage), log.String())
	}
	if err := d.Done(t.Context(), nil); err != nil {
		t.Errorf("Done = %v, want no error", err)
	}
}

func write(text string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

// TestSecondFile has a second file of a job that is known: it must not run twice.
func TestSecondFile(t *testing.T) {
	s := openTest(t, t.TempDir(), "")
	line, err := headerOf(worker.Job{ID: "a", Name: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	submitTo(t, s, worker.Job{ID: "a"})
	if err := os.WriteFile(s.path(readyFolder, name{at: 1, digest: digestOf("a")}.String()), line, 0o600); err != nil {
		t.Fatal(err)
	}
	d := nextID(t, s)
	if d.Job().Name != "" {
		t.Errorf("Next = job named %q, want the one that was submitted", d.Job().Name)
	}
	submitTo(t, s, worker.Job{ID: "b"})
	if id := nextID(t, s).Job().ID; id != "b" {
		t.Errorf("Next = job %q, want b", id)
	}
	fileOf(t, s, asideFolder)
}

// TestUnreadableBecomesFree breaks the file of a waiting job: it is set aside, and
// its id can be submitted again.
func TestUnreadableBecomesFree(t *testing.T) {
	s := openTest(t, t.TempDir(), "")
	submitTo(t, s, worker.Job{ID: "a", Data: text(100)})
	if err := os.Truncate(fileOf(t, s, readyFolder), 50); err != nil {
		t.Fatal(err)
	}
	submitTo(t, s, worker.Job{ID: "b"})
	if id := nextID(t, s).Job().ID; id != "b" {
		t.Errorf("Next = job %q, want b", id)
	}
	submitTo(t, s, worker.Job{ID: "a"})
	if id := nextID(t, s).Job().ID; id != "a" {
		t.Errorf("Next = job %q, want a", id)
	}
}

func text(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }

// TestRemovedByHand takes a job's file away: its id is free again.
func TestRemovedByHand(t *testing.T) {
	s := openTest(t, t.TempDir(), "")
	submitTo(t, s, worker.Job{ID: "a"})
	if err := os.Remove(fileOf(t, s, readyFolder)); err != nil {
		t.Fatal(err)
	}
	submitTo(t, s, worker.Job{ID: "a", Name: "again"})
	if d := nextID(t, s); d.Job().Name != "again" {
		t.Errorf("Next = job named %q, want again", d.Job().Name)
	}
}

// TestCopy works off a copy of a spool, as a backup is restored: without links,
// and with the claim of a process that is no more.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, "")
	for i := range 3 {
		submitTo(t, s, worker.Job{ID: fmt.Sprint(i), Data: text(10)})
	}
	nextID(t, s)
	copied := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.CommandContext(t.Context(), "cp", "-R", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	c := openTest(t, copied, "")
	var got []string
	for range 3 {
		d := nextID(t, c)
		got = append(got, fmt.Sprintf("%s %d", d.Job().ID, d.Job().Stalls))
		if err := c.Submit(t.Context(), worker.Job{ID: d.Job().ID}); !errors.Is(err, worker.ErrDuplicate) {
			t.Errorf("Submit(%q) = %v, want ErrDuplicate", d.Job().ID, err)
		}
		if err := d.Done(t.Context(), nil); err != nil {
			t.Errorf("Done = %v, want no error", err)
		}
	}
	slices.Sort(got)
	if want := []string{"0 1", "1 0", "2 0"}; !slices.Equal(got, want) {
		t.Errorf("the copy gives (id, stalls) %q, want %q", got, want)
	}
	if ids := mustList(t, c.path(idsFolder)); len(ids) != 0 {
		t.Errorf("ids holds %q after all have ended, want none", ids)
	}
}

// TestHistory ends more jobs than are kept.
func TestHistory(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir(), History: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.unsynced = true
	for i := range 2 * historyCheck {
		id := fmt.Sprint(i)
		submitTo(t, s, worker.Job{ID: id, Data: text(1000)})
		if answer, err := s.Cancel(t.Context(), id); err != nil || answer != worker.CancelRemoved {
			t.Fatalf("Cancel(%q) = %q, %v, want %q", id, answer, err, worker.CancelRemoved)
		}
	}
	files := mustList(t, s.path(endedFolder))
	if len(files) > 10+historyCheck {
		t.Errorf("%d ended jobs are kept, want at most %d", len(files), 10+historyCheck)
	}
	for _, file := range files {
		info, err := os.Stat(s.path(endedFolder, file))
		if err != nil || info.Size() > 500 {
			t.Fatalf("an ended job has %d bytes, %v, want no data", info.Size(), err)
		}
	}
}

// TestOpenRefuses has no folder to work in.
func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, config := range []Config{{}, {Dir: file}, {Dir: t.TempDir(), History: -1}} {
		s, err := Open(config)
		if err == nil || s != nil {
			t.Errorf("Open(%+v) = %v, %v, want an error", config, s, err)
		}
		if err != nil && strings.Contains(err.Error(), filepath.Dir(file)) {
			t.Errorf("Open = %q, which holds a whole path", err)
		}
	}
}

// TestAnotherProcess waits for a job that another process submits.
func TestAnotherProcess(t *testing.T) {
	site := newCrashSite(t)
	s := openTest(t, site.dir, "")
	got := make(chan worker.Delivery, 1)
	go func() {
		d, _ := s.Next(t.Context())
		got <- d
	}()
	if out, err := site.command(t, "submit", "from-elsewhere", 0).CombinedOutput(); err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	if d := <-got; d == nil || d.Job().ID != "from-elsewhere" {
		t.Errorf("Next = %v, want the job of another process", d)
	}
}

// TestLongQueue claims from a queue of 10 000 jobs, and counts the listings: they
// must not grow with the claims.
func TestLongQueue(t *testing.T) {
	const jobs = 10_000
	s := openTest(t, t.TempDir(), "")
	s.unsynced = true
	for i := range jobs {
		submitTo(t, s, worker.Job{ID: fmt.Sprint(i)})
	}
	listed := 0
	var read time.Time
	for i := range jobs {
		d := nextID(t, s)
		if id := fmt.Sprint(i); d.Job().ID != id {
			t.Fatalf("delivery %d = job %s, want the same", i, d.Job().ID)
		}
		if s.backlog.ready.read != read {
			read = s.backlog.ready.read
			listed++
		}
		if err := d.Done(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if listed > 3 {
		t.Errorf("the folder was listed %d times for %d claims, want a few", listed, jobs)
	}
}

// TestStatusWhileMoving asks for a job that never rests: it is always known.
func TestStatusWhileMoving(t *testing.T) {
	dir := t.TempDir()
	s, asker := openTest(t, dir, ""), openTest(t, dir, "")
	submitTo(t, s, worker.Job{ID: "a", Data: text(1000)})
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	all.Go(func() {
		for ctx.Err() == nil {
			if err := nextID(t, s).Retry(t.Context(), 0, nil); err != nil {
				t.Errorf("Retry = %v, want no error", err)
			}
		}
	})
	for range 200 {
		status, err := asker.Status(t.Context(), "a")
		if err != nil || len(status.Job.Data) != 1000 || status.State == worker.Settled {
			t.Errorf("Status = %s with %d bytes, %v, want the job whole", status.State, len(status.Job.Data), err)
		}
	}
	stop()
	all.Wait()
}
