package streams

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

func sorted(s []string) []string { slices.Sort(s); return s }

// TestGroupLost destroys the consumer group: what waits still runs, in a group
// made anew from the first entry, and what runs is not handed out again.
func TestGroupLost(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Minute)
	s.submit("runs", "a", "b", "c", "d", "e")
	running := next(t, s.Queue, "runs")
	s.do("XGROUP", "DESTROY", s.keys.ready(), group)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		done(t, next(t, s.Queue, id))
	}
	if _, err := running.Extend(t.Context()); err != nil {
		t.Errorf("Extend = %v, want no error", err)
	}
	done(t, running)
	s.wantLog("its group was gone")
	s.wantEmpty()
}

// TestListsLost deletes the lists of jobs, as an eviction does: that everybody's
// stream is gone is named, and a job that is submitted again is in its list again,
// once.
func TestListsLost(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Minute)
	jobs := []worker.Job{{ID: "waits"}, {ID: "bound", Host: s.config.Host}, {ID: "delayed", Delay: time.Hour}}
	for _, job := range jobs {
		if err := s.Submit(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []worker.Delivery{next(t, s.Queue, "bound"), next(t, s.Queue, "waits")} {
		if err := d.Defer(t.Context(), time.Time{}, ""); err != nil { // so that each list is known to the server
			t.Fatal(err)
		}
	}
	s.do("DEL", s.keys.ready(), s.keys.readyOn(s.config.Host), s.keys.delayed())
	s.submit("other")
	done(t, next(t, s.Queue, "other"))
	s.wantLog("its group was gone")
	for _, job := range jobs {
		if err := s.Submit(t.Context(), job); err != nil {
			t.Errorf("Submit of %q, which no list has = %v, want no error", job.ID, err)
		}
		if err := s.Submit(t.Context(), job); !errors.Is(err, worker.ErrDuplicate) {
			t.Errorf("Submit of %q once more = %v, want ErrDuplicate", job.ID, err)
		}
	}
	for _, id := range []string{"bound", "waits"} {
		done(t, next(t, s.Queue, id))
	}
	if status, err := s.Status(t.Context(), "delayed"); err != nil || status.State != worker.Delayed {
		t.Errorf("Status of the delayed job = %q, %v, want delayed", status.State, err)
	}
	if _, err := s.Cancel(t.Context(), "delayed"); err != nil {
		t.Error(err)
	}
	s.wantEmpty()
}

// TestSubmitAnswerLost cuts the connection before the answer, and has the job end
// before the call is repeated: it must not run again.
func TestSubmitAnswerLost(t *testing.T) {
	server := lab.Redis(t)
	proxy := newProxy(t, server.Addr)
	s := newStand(t, proxy.addr(), time.Minute)
	s.submit("before") // the server knows the script now
	direct := open(t, Config{Client: openClient(t, server.Addr), Prefix: s.config.Prefix, Host: "host-b", Lease: time.Minute})
	done(t, next(t, direct, "before"))
	proxy.cutting(1)
	submitted := make(chan error, 1)
	go func() { submitted <- s.Submit(t.Context(), worker.Job{ID: "job"}) }()
	done(t, next(t, direct, "job"))
	until(t, "a cut", func() bool { return proxy.cutting(1) > 0 })
	proxy.cutting(0)
	if err := <-submitted; err != nil {
		t.Errorf("Submit = %v, want no error", err)
	}
	if status, err := s.Status(t.Context(), "job"); err != nil || status.State != worker.Settled {
		t.Errorf("Status = %+v, %v, want it settled, and not submitted anew", status, err)
	}
	s.submit("job") // another call does that
	done(t, next(t, direct, "job"))
}

// TestStateLost empties the server under a worker that waits.
func TestStateLost(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Minute)
	s.submit("before")
	old := next(t, s.Queue, "before")
	s.do("EVAL", "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', k) end", "0", s.config.Prefix+"*")
	got := s.nextAndDone()
	s.submit("after")
	if err := <-got; err != nil {
		t.Errorf("Next and Done = %v, want no error", err)
	}
	if err := old.Done(t.Context(), nil); err == nil {
		t.Error("Done of a job that the server forgot = no error, want ErrLeaseLost")
	}
}

// before7 stands before a script and has XAUTOCLAIM do what it does before Redis 7:
// an entry that was deleted comes as nil and stays pending, and there is no third
// part that names it.
const before7 = `
local server = redis
local redis = setmetatable({pcall = function(command, ...)
  if command ~= 'XAUTOCLAIM' then return server.pcall(command, ...) end
  local stream, group, consumer, idle, from = ...
  local pending = server.pcall('XPENDING', stream, group, 'IDLE', idle, from, '+', 2)
  if pending.err then return pending end
  if not pending[1] then return {'0-0', {}} end
  local id = pending[1][1]
  local entry = server.call('XRANGE', stream, id, id)[1]
  if entry then server.call('XCLAIM', stream, group, consumer, idle, id) end
  return {pending[2] and pending[2][1] or '0-0', {entry or false}}
end}, {__index = server})
`

// TestEntryDeleted deletes the entry of a job that runs, as a trim by hand does. It
// is named, and pends no more.
func TestEntryDeleted(t *testing.T) {
	for name, server := range map[string]string{"of Redis 7": "", "before Redis 7": before7} {
		t.Run(name, func(t *testing.T) { testEntryDeleted(t, server) })
	}
}

func testEntryDeleted(t *testing.T, server string) {
	s := newStand(t, lab.RedisAddr(t), time.Second)
	s.scripts.claim = newClaimScript(server + preludeText + takeText + claimText)
	s.submit("gone", "next")
	next(t, s.Queue, "gone")
	list := s.do("XRANGE", s.keys.ready(), "-", "+", "COUNT", "1")
	entries, err := list.AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	s.do("XDEL", s.keys.ready(), entries[0].ID)
	done(t, next(t, s.Queue, "next"))
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		_, _ = s.Next(t.Context()) // until the last job comes
	}()
	until(t, "the lost entry to be named", func() bool { return s.log.count("was deleted while it was claimed") > 0 })
	s.wantLog("entry " + entries[0].ID + " was deleted")
	pending := s.do("XPENDING", s.keys.ready(), group, "-", "+", "10")
	if left, err := pending.ToArray(); err != nil || len(left) != 0 {
		t.Errorf("XPENDING = %d entries, %v, want none: the lost one would come for ever", len(left), err)
	}
	s.submit("last")
	<-waiting
}

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	(&scene{t: t}).until(what, so)
}

// wantEmpty checks that settled jobs leave nothing but what ends by itself.
func (s *stand) wantEmpty() {
	s.t.Helper()
	answer := s.do("KEYS", s.config.Prefix+"*")
	keys, err := answer.AsStrSlice()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, key := range keys {
		switch name := strings.TrimPrefix(key, s.config.Prefix); {
		case strings.HasPrefix(name, "ended:"), strings.HasPrefix(name, "runs:rec:"):
			if s.number("PTTL", key) <= 0 {
				s.t.Errorf("key %q never ends", key)
			}
		case name == "ready", name == "dead", strings.HasPrefix(name, "ready:"):
			if n := s.number("XLEN", key); n != 0 {
				s.t.Errorf("stream %q has %d entries, want none", key, n)
			}
		case name == "server", name == "changed":
		default:
			s.t.Errorf("key %q is left", key)
		}
	}
}

// TestNothingLeft takes jobs through everything, and leaves only history.
func TestNothingLeft(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Minute)
	ctx := t.Context()
	s.submit("done", "retried", "deferred", "dead", "cancelled", "cancelled later")
	if _, err := s.Cancel(ctx, "cancelled"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		d, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rec := &record.Record{JobID: d.Job().ID, Outcome: record.Completed}
		switch d.Job().ID {
		case "retried":
			err = d.Retry(ctx, time.Millisecond, rec)
		case "deferred":
			err = d.Defer(ctx, time.Now(), "host-b")
		case "dead":
			if err = d.Dead(ctx, "x", rec); err == nil {
				err = s.Requeue(ctx, "dead")
			}
		case "cancelled later":
			if _, err = s.Cancel(ctx, "cancelled later"); err == nil {
				err = d.Retry(ctx, time.Hour, rec)
			}
		default:
			err = d.Done(ctx, rec)
		}
		if err != nil {
			t.Fatalf("settle %s: %v", d.Job().ID, err)
		}
	}
	for range 3 {
		d, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		done(t, d)
	}
	s.wantEmpty()
}

// TestServerAnew restarts the server while a job runs and another waits: nobody
// is taken for lost before a lease has passed, and what is older than the server
// says that it may have run.
func TestServerAnew(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	s := newStand(t, server.Addr, 2*time.Second)
	s.submit("runs", "waits")
	first := next(t, s.Queue, "runs")
	if first.Job().MayHaveRun {
		t.Error("MayHaveRun of a new job = true, want false")
	}
	server.Stop()
	time.Sleep(3 * time.Second) // longer than a lease
	server.Start()
	other := s.more("host-b")
	d := next(t, other, "waits") // and not the one that runs
	if !d.Job().MayHaveRun {
		t.Error("MayHaveRun of a job that is older than its server = false, want true")
	}
	if _, err := first.Extend(t.Context()); err != nil {
		t.Errorf("Extend after the restart = %v, want no error", err)
	}
	done(t, d)
	s.submit("new")
	if d := next(t, other, "new"); d.Job().MayHaveRun {
		t.Error("MayHaveRun of a job that is younger than its server = true, want false")
	}
	// The one that runs is extended no more.
	if d := next(t, s.more("host-b"), "runs"); d.Job().Stalls != 1 {
		t.Errorf("Stalls = %d, want 1", d.Job().Stalls)
	}
}

// TestConsumersGo has consumers of workers that are gone cleared away, but none
// that holds a job.
func TestConsumersGo(t *testing.T) {
	t.Parallel()
	s := newStand(t, lab.Redis(t).Addr, time.Second)
	s.submit("a", "b", "c")
	done(t, next(t, s.more("gone"), "a"))
	holder := s.more("holds")
	held := next(t, holder, "b")
	names := func() (names []string) {
		answer := s.do("XINFO", "CONSUMERS", s.keys.ready(), group)
		list, _ := answer.ToArray()
		for _, c := range list {
			fields, _ := c.AsMap()
			name, _ := fields["name"]
			text, _ := name.ToString()
			names = append(names, text[:strings.LastIndexByte(text, '-')])
		}
		return sorted(names)
	}
	last := next(t, s.Queue, "c")
	if got := names(); !slices.Equal(got, []string{"gone", "holds", "host-a"}) {
		t.Fatalf("consumers are of %q, want all three", got)
	}
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		_, _ = s.Next(t.Context())
	}()
	until(t, "the idle consumer to go", func() bool {
		// The two that hold jobs keep them.
		for _, d := range []worker.Delivery{held, last} {
			if _, err := d.Extend(t.Context()); err != nil {
				t.Fatalf("Extend = %v, want no error", err)
			}
		}
		return !slices.Contains(names(), "gone")
	})
	if got := names(); !slices.Contains(got, "holds") {
		t.Errorf("consumers are of %q, want the one that holds a job", got)
	}
	done(t, held)
	done(t, last)
	s.submit("last")
	<-waiting
}

// TestMirror reads records that a settle wrote, and what others planted.
func TestMirror(t *testing.T) {
	server := lab.Redis(t)
	s := newStand(t, server.Addr, time.Minute)
	ctx := t.Context()
	s.submit("job")
	attempt := int64(1)
	if err := next(t, s.Queue, "job").Done(ctx, &record.Record{
		JobID: "job", Outcome: record.Completed, Reason: exit.Reason("awaiting-input"), Attempt: &attempt, V: record.Version,
	}); err != nil {
		t.Fatal(err)
	}
	rec, err := s.more("host-b").Record(ctx, "job")
	if err != nil || rec == nil || rec.Outcome != record.Completed || rec.JobID != "job" || *rec.Attempt != 1 {
		t.Errorf("Record(job) = %+v, %v, want the one of the settle", rec, err)
	}
	if life := s.number("PTTL", s.config.Prefix+"runs:rec:job"); life <= 0 {
		t.Errorf("the mirrored record lives %d ms, want an end", life)
	}
	s.do("RPUSH", s.keys.record("list"), "x")
	s.do("SET", s.keys.record("text"), "x")
	s.do("SET", s.keys.record("huge"), strings.Repeat("[", maxRecordLen+1000))
	for _, id := range []string{"nobody", "list", "text", "huge"} {
		if rec, err := s.Record(ctx, id); rec != nil || err != nil {
			t.Errorf("Record(%s) = %+v, %v, want none", id, rec, err)
		}
	}
	s.wantLog("job=list", "job=text", "job=huge")
	server.Pause()
	if rec, err := s.Record(ctx, "job"); rec != nil || err == nil {
		t.Errorf("Record from a server that hangs = %v, %v, want an error", rec, err)
	}
	server.Resume()
}

func TestWarnings(t *testing.T) {
	s := newStand(t, lab.Redis(t).Addr, time.Minute)
	if got := s.Warnings(t.Context()); got != nil {
		t.Errorf("Warnings = %q, want none", got)
	}
	s.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	s.do("CONFIG", "SET", "appendonly", "no")
	if got := s.Warnings(t.Context()); len(got) != 2 || !strings.Contains(got[0], "allkeys-lru") || !strings.Contains(got[1], "appendonly") {
		t.Errorf("Warnings = %q, want two", got)
	}
	s.do("ACL", "SETUSER", "default", "-config")
	if got := s.Warnings(t.Context()); got != nil {
		t.Errorf("Warnings where the question is forbidden = %q, want none", got)
	}
}

func TestNewRefuses(t *testing.T) {
	client := openClient(t, lab.RedisAddr(t))
	for _, tt := range []struct {
		field  string
		config Config
	}{
		{"Client", Config{}},
		{"Prefix", Config{Client: client, Prefix: "jobs:"}},
		{"Prefix", Config{Client: client, Prefix: "{}jobs:"}},
		{"Prefix", Config{Client: client, Prefix: "{jobs:"}},
		{"Lease", Config{Client: client, Lease: time.Millisecond}},
		{"Lease", Config{Client: client, Lease: -1}},
		{"History", Config{Client: client, History: -1}},
		{"RecordLife", Config{Client: client, RecordLife: -1}},
	} {
		if q, err := New(tt.config); q != nil || err == nil || !strings.Contains(err.Error(), tt.field+": ") {
			t.Errorf("New(%+v) = %v, %v, want an error of %s", tt.config, q, err, tt.field)
		}
	}
	if option, err := ClientOption("redis://:secret@[:1"); err == nil || strings.Contains(err.Error(), "secret") || option.InitAddress != nil {
		t.Errorf("ClientOption = %v, want an error without the password", err)
	}
}
