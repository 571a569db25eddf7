package streams

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// doneNext settles a delivery and returns the id of the job it claimed, "" for
// none.
func doneNext(t *testing.T, d worker.Delivery) (next worker.Delivery, id string) {
	t.Helper()
	next, err := d.(worker.DoneNexter).DoneNext(t.Context(), &record.Record{JobID: d.Job().ID, Outcome: record.Completed})
	if err != nil {
		t.Fatalf("DoneNext of %q = %v, want no error", d.Job().ID, err)
	}
	if next == nil {
		return nil, ""
	}
	return next, next.Job().ID
}

// TestDoneNext settles each job of a backlog with the claim of the next.
func TestDoneNext(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Minute)
	s.submit("a", "b")
	if err := s.Submit(t.Context(), worker.Job{ID: "elsewhere", Host: "host-b"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Submit(t.Context(), worker.Job{ID: "here", Host: "host-a"}); err != nil {
		t.Fatal(err)
	}
	d := next(t, s.Queue, "here")
	for _, want := range []string{"a", "b", ""} {
		settled := d.Job().ID
		var id string
		if d, id = doneNext(t, d); id != want {
			t.Fatalf("DoneNext of %q claimed %q, want %q", settled, id, want)
		}
		if status, err := s.Status(t.Context(), settled); err != nil || status.State != worker.Settled {
			t.Errorf("Status(%q) = %+v, %v, want settled", settled, status, err)
		}
		if rec, err := s.Record(t.Context(), settled); err != nil || rec == nil || rec.JobID != settled {
			t.Errorf("Record(%q) = %v, %v, want its record", settled, rec, err)
		}
		if d == nil {
			break
		}
		if _, err := d.Extend(t.Context()); err != nil {
			t.Errorf("Extend of %q = %v, want no error", id, err)
		}
	}
	done(t, next(t, s.more("host-b"), "elsewhere"))
	s.wantEmpty()
}

// TestDoneNextLost has a worker whose lease is another one's: it settles nothing
// and claims nothing.
func TestDoneNextLost(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Second)
	s.submit("job")
	old := next(t, s.Queue, "job")
	held := next(t, s.more("host-b"), "job") // once the lease is over
	s.submit("waits")
	d, err := old.(worker.DoneNexter).DoneNext(t.Context(), nil)
	if d != nil || !errors.Is(err, worker.ErrLeaseLost) {
		t.Errorf("DoneNext of a lost lease = %v, %v, want ErrLeaseLost", d, err)
	}
	if status, err := s.Status(t.Context(), "waits"); err != nil || status.State != worker.Waiting {
		t.Errorf("Status(waits) = %+v, %v, want it waiting", status, err)
	}
	if _, err := held.Extend(t.Context()); err != nil {
		t.Errorf("Extend by the new holder = %v, want no error", err)
	}
}

// TestDoneNextFindsLost has a worker that is never idle: it takes over what another
// one lost all the same.
func TestDoneNextFindsLost(t *testing.T) {
	s := newStand(t, lab.RedisAddr(t), time.Second)
	s.submit("lost", "a")
	next(t, s.more("gone"), "lost")
	d := next(t, s.Queue, "a")
	n := 0
	until(t, "the lost job", func() bool {
		if _, err := d.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		n++
		s.submit(fmt.Sprint("more-", n)) // so that there is always one
		var id string
		d, id = doneNext(t, d)
		return id == "lost"
	})
	if d.Job().Stalls != 1 {
		t.Errorf("Stalls = %d, want 1", d.Job().Stalls)
	}
}

// TestDoneNextSettlesAnyway spoils what the next claim meets. The settling is not
// held up by it.
func TestDoneNextSettlesAnyway(t *testing.T) {
	addr := lab.RedisAddr(t)
	for name, spoil := range map[string]func(s *stand){
		"a job that can't be read": func(s *stand) {
			s.submit("broken")
			s.do("HSET", s.keys.job("broken"), "body", "{")
		},
		"delayed jobs of another type": func(s *stand) {
			s.do("DEL", s.keys.delayed())
			s.do("SET", s.keys.delayed(), "x")
		},
		"a host's stream of another type": func(s *stand) { s.do("SET", s.keys.readyOn("host-a"), "x") },
		"a delayed job where the stream it belongs to is of another type": func(s *stand) {
			if err := s.Submit(t.Context(), worker.Job{ID: "later", Host: "host-b", Delay: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			s.do("SET", s.keys.readyOn("host-b"), "x")
		},
		"a server of another type": func(s *stand) {
			s.do("DEL", s.keys.server())
			s.do("SET", s.keys.server(), "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, addr, time.Minute)
			s.submit("job")
			d := next(t, s.Queue, "job")
			spoil(s)
			if _, id := doneNext(t, d); id != "" {
				t.Errorf("DoneNext claimed %q, want none", id)
			}
			if status, err := s.Status(t.Context(), "job"); err != nil || status.State != worker.Settled {
				t.Errorf("Status = %+v, %v, want settled", status, err)
			}
		})
	}
}

// TestDoneNextAnswerLost cuts the connection before the answer: the call that
// follows settles nothing twice and gives the job that was claimed.
func TestDoneNextAnswerLost(t *testing.T) {
	server := lab.Redis(t)
	proxy := newProxy(t, server.Addr)
	s := newStand(t, proxy.addr(), time.Minute)
	s.submit("a", "b", "c")
	d := next(t, s.Queue, "a")
	d, _ = doneNext(t, d) // the server knows the script now
	proxy.cutting(1)
	claimed := make(chan string)
	go func() {
		next, err := d.(worker.DoneNexter).DoneNext(t.Context(), nil)
		if err != nil || next == nil {
			t.Errorf("DoneNext = %v, %v, want a job", next, err)
			close(claimed)
			return
		}
		claimed <- next.Job().ID
	}()
	until(t, "a cut", func() bool { return proxy.cutting(1) > 0 })
	proxy.cutting(0)
	if id := <-claimed; id != "c" {
		t.Errorf("DoneNext claimed %q, want c", id)
	}
	if status, err := s.Status(t.Context(), "b"); err != nil || status.State != worker.Settled || status.Attempts != 0 {
		t.Errorf("Status(b) = %+v, %v, want settled once", status, err)
	}
	if s.number("EXISTS", s.keys.readyOn("host-a")) != 0 {
		t.Error("looking for the lost answer made a stream of the host, which has no jobs of its own")
	}
}

// TestNextWaits submits to a worker that waits at a server that has forgotten the
// scripts meanwhile.
func TestNextWaits(t *testing.T) {
	s := newStand(t, lab.Redis(t).Addr, time.Minute)
	got := s.nextAndDone()
	until(t, "the worker to wait", func() bool {
		clients := s.do("INFO", "clients")
		text, _ := clients.ToString()
		return strings.Contains(text, "blocked_clients:1")
	})
	s.do("SCRIPT", "FLUSH")
	s.submit("job")
	if err := <-got; err != nil {
		t.Errorf("Next and Done = %v, want no error", err)
	}
	s.wantEmpty()
}
