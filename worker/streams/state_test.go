package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A stand is a queue whose keys a test looks into and spoils.
type stand struct {
	*Queue
	t      *testing.T
	client rueidis.Client
	log    *logText
}

// newStand returns a stand on a server.
func newStand(t *testing.T, addr string, lease time.Duration) *stand {
	t.Helper()
	client := openClient(t, addr)
	s := &stand{t: t, client: client, log: &logText{}}
	s.Queue = open(t, Config{Client: client, Prefix: testPrefix(t, client), Host: "host-a", Lease: lease, Log: s.log.logger()})
	return s
}

// more returns one more queue on the same keys.
func (s *stand) more(host string) *Queue {
	c := s.config
	c.Host = host
	return open(s.t, c)
}

// do sends a command and returns its answer.
func (s *stand) do(words ...string) rueidis.RedisMessage {
	s.t.Helper()
	answer, err := s.client.Do(s.t.Context(), s.client.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		s.t.Fatalf("%.200q = %v, want no error", words, err)
	}
	return answer
}

func (s *stand) number(words ...string) int64 {
	s.t.Helper()
	answer := s.do(words...)
	n, err := answer.AsInt64()
	if err != nil {
		s.t.Fatalf("%.200q: %v, want a number", words, err)
	}
	return n
}

func (s *stand) submit(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if err := s.Submit(s.t.Context(), worker.Job{ID: id}); err != nil {
			s.t.Fatalf("Submit(%.64q) = %v, want no error", id, err)
		}
	}
}

// next takes the next job, which must be the one of the id.
func next(t *testing.T, q *Queue, id string) worker.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := q.Next(ctx)
	if err != nil {
		t.Fatalf("Next = %v, want job %q", err, id)
	}
	if got := d.Job().ID; got != id {
		t.Fatalf("Next = job %q, want %q", got, id)
	}
	return d
}

func done(t *testing.T, d worker.Delivery) {
	t.Helper()
	if err := d.Done(t.Context(), nil); err != nil {
		t.Fatalf("Done of %q = %v, want no error", d.Job().ID, err)
	}
}

// nextAndDone settles the next job, whenever it comes, and sends how that went.
func (s *stand) nextAndDone() <-chan error {
	got := make(chan error, 1)
	go func() {
		d, err := s.Next(s.t.Context())
		if err == nil {
			err = d.Done(s.t.Context(), nil)
		}
		got <- err
	}()
	return got
}

// logText is a log that tests look into.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// wantLog checks that each text is in the log, a few times at most.
func (s *stand) wantLog(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if n := s.log.count(text); n < 1 || n > 5 {
			s.t.Errorf("the log names %q %d times, want 1 to 5", text, n)
		}
	}
}

// TestForeignKeys has values of other types where the queue's keys are. Each is
// named in the log, and what is sound goes on.
func TestForeignKeys(t *testing.T) {
	addr := lab.RedisAddr(t)
	for _, tt := range []struct {
		name  string
		spoil func(s *stand) (key string)
	}{
		{"server", func(s *stand) string { s.do("SET", s.keys.server(), "x"); return s.keys.server() }},
		{"changed", func(s *stand) string { s.do("RPUSH", s.keys.changed(), "x"); return s.keys.changed() }},
		{"delayed", func(s *stand) string { s.do("SET", s.keys.delayed(), "x"); return s.keys.delayed() }},
		{"ready of the host", func(s *stand) string {
			s.do("SET", s.keys.readyOn("host-a"), "x")
			return s.keys.readyOn("host-a")
		}},
		{"job", func(s *stand) string {
			s.submit("broken")
			s.do("SET", s.keys.job("broken"), "x")
			return "entry"
		}},
		{"job without a body", func(s *stand) string {
			s.submit("broken")
			s.do("HDEL", s.keys.job("broken"), "body")
			return "broken"
		}},
		{"job that is gone", func(s *stand) string {
			s.submit("broken")
			s.do("DEL", s.keys.job("broken"))
			return "broken"
		}},
		{"job with a body that is no JSON", func(s *stand) string {
			s.submit("broken")
			s.do("HSET", s.keys.job("broken"), "body", strings.Repeat("{", 1<<20))
			return "broken"
		}},
		{"job with a payload that is no JSON", func(s *stand) string {
			s.submit("broken")
			s.do("HSET", s.keys.job("broken"), "data", strings.Repeat("{", 1<<20))
			return "broken"
		}},
		{"job passed on by garbage", func(s *stand) string {
			s.submit("broken")
			s.do("HSET", s.keys.job("broken"), "passed", "[1,")
			return "broken"
		}},
		{"entry without an id", func(s *stand) string {
			s.do("XADD", s.keys.ready(), "*", "x", strings.Repeat("y", 1<<20))
			return "belongs to no job"
		}},
		{"entry of nobody", func(s *stand) string {
			s.do("XADD", s.keys.ready(), "*", "id", strings.Repeat("y", 1<<20))
			return "belongs to no job"
		}},
		{"delayed job that is gone", func(s *stand) string {
			s.do("ZADD", s.keys.delayed(), "1", "nobody")
			s.log.logger().Info("nobody") // it is dropped without a word
			return "nobody"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, addr, time.Minute)
			named := tt.spoil(s)
			s.submit("sound", "sound too")
			done(t, next(t, s.Queue, "sound"))
			done(t, next(t, s.Queue, "sound too"))
			// Nothing of it comes back.
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			if d, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Next = %v, %v, want nothing more", d, err)
			}
			s.wantLog(named)
		})
	}
}

// TestGarbageFields has a job's every field spoilt, in turn. It still comes to one
// end or the other.
func TestGarbageFields(t *testing.T) {
	addr := lab.RedisAddr(t)
	garbage := []string{"", "x", "-1", "nan", "1e999", "9999999999999999999999", "\x00\xff", "[", strings.Repeat("9", 1<<20)}
	for _, field := range []string{"attempts", "stalls", "passed", "placed", "not_host", "not_until", "submit", "settled", "due", "data", "body"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, addr, time.Minute)
			for i, value := range garbage {
				id := fmt.Sprint("job-", i)
				s.submit(id)
				s.do("HSET", s.keys.job(id), field, value)
				s.submit("sound-" + id)
				d, err := s.Next(t.Context())
				if err != nil {
					t.Fatalf("Next = %v, want a job", err)
				}
				if d.Job().ID == id { // else it is aside
					s.do("HSET", s.keys.job(id), field, value)
					if field == "body" || field == "data" {
						done(t, d)
					} else if err := d.Retry(t.Context(), 0, nil); err != nil {
						t.Errorf("%s = %.20q: Retry = %v, want no error", field, value, err)
					}
					if d, err = s.Next(t.Context()); err != nil {
						t.Fatalf("Next = %v, want a job", err)
					}
				}
				done(t, d)
				if d.Job().ID != "sound-"+id {
					t.Fatalf("Next = %q, want the sound job", d.Job().ID)
				}
				if status, err := s.Status(t.Context(), id); err == nil && status.State == worker.Waiting {
					d, err := s.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					done(t, d)
				}
			}
			for range s.Dead(t.Context()) { // readable or not, it ends
			}
		})
	}
}

// TestRefusedChangesNothing has a server that is full, and keys of another type:
// what is refused can be tried again.
func TestRefusedChangesNothing(t *testing.T) {
	server := lab.Redis(t)
	s := newStand(t, server.Addr, time.Minute)
	rec := &record.Record{JobID: "job"}
	for what, settle := range map[string]func(worker.Delivery) error{
		"Retry": func(d worker.Delivery) error { return d.Retry(t.Context(), time.Hour, rec) },
		"Defer": func(d worker.Delivery) error { return d.Defer(t.Context(), time.Now().Add(-time.Hour), "x") },
		"Dead":  func(d worker.Delivery) error { return d.Dead(t.Context(), "x", rec) },
	} {
		s.submit(what)
		d := next(t, s.Queue, what)
		s.submit("waits")
		s.do("CONFIG", "SET", "maxmemory", "1")
		before := s.dump()
		if err := settle(d); err == nil || errors.Is(err, worker.ErrLeaseLost) || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s on a full server = %v, want its error", what, err)
		}
		if err := s.Submit(t.Context(), worker.Job{ID: "new"}); err == nil {
			t.Error("Submit on a full server = no error, want its error")
		}
		if after := s.dump(); after != before {
			t.Errorf("%s on a full server changed\n%s\ninto\n%s", what, before, after)
		}
		s.do("CONFIG", "SET", "maxmemory", "0")
		if err := settle(d); err != nil {
			t.Errorf("%s once there is room = %v, want no error", what, err)
		}
		if _, err := s.Cancel(t.Context(), "waits"); err != nil {
			t.Fatal(err)
		}
		_, _ = s.Cancel(t.Context(), what) // off the queue, if it is there
	}

	// A job may end, which makes room.
	s.submit("ends")
	d := next(t, s.Queue, "ends")
	s.do("CONFIG", "SET", "maxmemory", "1")
	if err := d.Done(t.Context(), rec); err != nil {
		t.Errorf("Done on a full server = %v, want no error", err)
	}
	s.do("CONFIG", "SET", "maxmemory", "0")

	// The dead list and the delayed jobs are where they can't be written.
	s.submit("job")
	d = next(t, s.Queue, "job")
	s.do("DEL", s.keys.dead(), s.keys.delayed())
	s.do("SET", s.keys.dead(), "x")
	s.do("SET", s.keys.delayed(), "x")
	before := s.dump()
	if err := d.Dead(t.Context(), "x", rec); err == nil {
		t.Error("Dead without a dead list = no error, want one")
	}
	if err := d.Retry(t.Context(), time.Hour, rec); err == nil {
		t.Error("Retry without delayed jobs = no error, want one")
	}
	if after := s.dump(); after != before {
		t.Errorf("refused settles changed\n%s\ninto\n%s", before, after)
	}
	done(t, d)
}

// dump returns what is stored of every job.
func (s *stand) dump() string {
	answer := s.do("KEYS", s.config.Prefix+"*")
	keys, err := answer.AsStrSlice()
	if err != nil {
		s.t.Fatal(err)
	}
	var text []string
	for _, key := range keys {
		if key == s.keys.server() {
			continue
		}
		answer := s.do("DUMP", key)
		value, _ := answer.ToString()
		text = append(text, fmt.Sprintf("%q %q", key, value))
	}
	return strings.Join(sorted(text), "\n")
}
