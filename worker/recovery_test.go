package worker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// stall makes the job look as if n workers had vanished with it.
func (b *bench) stall(n int) {
	b.t.Helper()
	for range n {
		if _, err := b.queue.Next(context.Background()); err != nil {
			b.t.Fatal(err)
		}
		b.queue.Expire()
	}
}

// leased gives the queue's claims an end, so that they can stall.
func leased(b *bench, _ *worker.Config) { b.queue.Lease = time.Hour }

func aRecord(id string, attempt int, outcome record.Outcome, reason exit.Reason, started time.Time) record.Record {
	return record.Build(record.Run{
		JobID: id, Attempt: attempt, Outcome: outcome, Reason: reason, Host: "host-9",
		StartedAt: started, EndedAt: started.Add(time.Minute),
		Size: jobsize.Size{Mem: 64, CPU: 25, Source: jobsize.FromDefault}, Capacity: &record.Capacity{},
	})
}

type fakeMirror struct {
	rec *record.Record
	err error
}

func (m fakeMirror) Record(context.Context, string) (*record.Record, error) { return m.rec, m.err }

// A job that stalled is settled from its record where one settles the attempt,
// wherever it can be seen, and runs again otherwise.
func TestSettledFromRecord(t *testing.T) {
	tests := []struct {
		name     string
		local    func(now time.Time) record.Record
		mirrored func(now time.Time) record.Record
		runs     int
		notices  int
	}{
		{name: "no record", runs: 1},
		{name: "completed here", local: func(now time.Time) record.Record { return aRecord("job", 1, record.Completed, "", now) }},
		{name: "policy here: told again", local: func(now time.Time) record.Record {
			return aRecord("job", 1, record.Policy, "oom-killed", now)
		}, notices: 1},
		{name: "completed elsewhere", mirrored: func(now time.Time) record.Record { return aRecord("job", 1, record.Completed, "", now) }},
		{name: "failed here", local: func(now time.Time) record.Record { return aRecord("job", 1, record.Failed, "worker-error", now) }, runs: 1},
		{name: "another attempt", local: func(now time.Time) record.Record { return aRecord("job", 2, record.Completed, "", now) }, runs: 1},
		{name: "an older job", local: func(now time.Time) record.Record {
			return aRecord("job", 1, record.Completed, "", now.Add(-6*time.Minute))
		}, runs: 1},
		{name: "within the clock skew", local: func(now time.Time) record.Record {
			return aRecord("job", 1, record.Completed, "", now.Add(-5*time.Minute))
		}},
		{name: "failed here, completed elsewhere",
			local:    func(now time.Time) record.Record { return aRecord("job", 1, record.Failed, "worker-error", now) },
			mirrored: func(now time.Time) record.Record { return aRecord("job", 1, record.Completed, "", now) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, both(leased, func(b *bench, c *worker.Config) {
					if tt.local != nil {
						if err := b.records.Write(tt.local(time.Now())); err != nil {
							t.Fatal(err)
						}
					}
					if tt.mirrored != nil {
						rec := tt.mirrored(time.Now())
						c.Mirror = fakeMirror{rec: &rec}
					}
				}))
				b.submit("job")
				b.stall(1)
				b.start()
				synctest.Wait()
				if got := b.state("job"); got != worker.Settled {
					t.Errorf("state is %q, want settled", got)
				}
				if got := b.runtime.runs(); got != tt.runs {
					t.Errorf("ran %d times, want %d", got, tt.runs)
				}
				if got := b.notified(); len(got) != tt.notices {
					t.Errorf("notified %d times, want %d", len(got), tt.notices)
				}
				b.end()
			})
		})
	}
}

// A job that its queue's server may have forgotten is settled from the record of
// the attempt that is due or of a later one, and of no other.
func TestMayHaveRun(t *testing.T) {
	tests := []struct {
		name     string
		attempts int // that the queue has counted
		rec      func(now time.Time) record.Record
		runs     int
	}{
		{name: "no record", runs: 1},
		{name: "this attempt", rec: func(now time.Time) record.Record { return aRecord("job", 1, record.Completed, "", now) }},
		{name: "a later attempt", rec: func(now time.Time) record.Record { return aRecord("job", 3, record.Policy, "oom-killed", now) }},
		{name: "a later attempt, counted before", attempts: 1, rec: func(now time.Time) record.Record { return aRecord("job", 3, record.Completed, "", now) }},
		{name: "an earlier attempt", attempts: 1, rec: func(now time.Time) record.Record { return aRecord("job", 1, record.Completed, "", now) }, runs: 1},
		{name: "a later attempt that failed", rec: func(now time.Time) record.Record { return aRecord("job", 2, record.Failed, "worker-error", now) }, runs: 1},
		{name: "an older job", rec: func(now time.Time) record.Record {
			return aRecord("job", 1, record.Completed, "", now.Add(-6*time.Minute))
		}, runs: 1},
		{name: "no attempt", rec: func(now time.Time) record.Record {
			rec := aRecord("job", 1, record.Completed, "", now)
			rec.Attempt = nil
			return rec
		}, runs: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(b *bench, c *worker.Config) {
					c.Queue = alteredQueue{b.queue, func(job *worker.Job) { job.MayHaveRun = true }}
					if tt.rec != nil {
						b.records.Write(tt.rec(time.Now()))
					}
				})
				b.submit("job")
				for range tt.attempts {
					d, _ := b.queue.Next(t.Context())
					d.Retry(t.Context(), 0, nil)
				}
				b.start()
				synctest.Wait()
				if got := b.runtime.runs(); got != tt.runs {
					t.Errorf("ran %d times, want %d", got, tt.runs)
				}
				if got := b.state("job"); got != worker.Settled {
					t.Errorf("state is %q, want settled", got)
				}
				b.end()
			})
		})
	}
}

// A job that did not stall runs, whatever record an earlier job of its id left.
func TestRecordOfAnEarlierJob(t *testing.T) {
	for attempts := range 2 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			b.records.Write(aRecord("job", attempts+1, record.Completed, "", time.Now()))
			b.submit("job")
			for range attempts {
				d, _ := b.queue.Next(t.Context())
				d.Retry(t.Context(), 0, nil)
			}
			b.start()
			synctest.Wait()
			if got := b.runtime.runs(); got != 1 {
				t.Errorf("after %d attempts it ran %d times, want 1", attempts, got)
			}
			b.end()
		})
	}
}

// While nobody can say whether the job has run, it is neither run nor lost.
func TestRecordUnreadable(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mirror := &switchedMirror{err: errBroken}
				b := newBench(t, both(leased, func(b *bench, c *worker.Config) {
					if where == "here" {
						b.records.readErr = errBroken
					} else {
						c.Mirror = mirror
					}
				}))
				b.submit("job")
				b.stall(1)
				b.start()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := b.runtime.runs(); got != 0 {
					t.Errorf("ran %d times while its record could not be read", got)
				}
				b.records.mu.Lock()
				b.records.readErr = nil
				b.records.mu.Unlock()
				mirror.set(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				b.wantRecord("job", record.Completed, "")
				if !b.log.has("record_read_failed") {
					t.Error("the log does not say so")
				}
				b.end()
			})
		})
	}
}

type switchedMirror struct {
	mu  sync.Mutex
	err error
}

func (m *switchedMirror) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *switchedMirror) Record(context.Context, string) (*record.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return nil, m.err
}

// A record that is cut settles nothing.
func TestRecordUnparseable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, leased)
		b.records.readErr = &record.UnparseableError{File: "job.json", Err: errBroken}
		b.submit("job")
		b.stall(1)
		b.start()
		synctest.Wait()
		if got := b.runtime.runs(); got != 1 {
			t.Errorf("ran %d times, want 1", got)
		}
		b.end()
	})
}

// A job that takes every worker with it is given up, and reaches no hook.
func TestPoison(t *testing.T) {
	for stalls, runs := range map[int]int{3: 1, 4: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, both(leased, func(_ *bench, c *worker.Config) {
				c.Hooks.Describe = func(context.Context, worker.Job) (worker.Description, error) {
					if runs == 0 {
						t.Error("a hook was called")
					}
					return worker.Description{}, nil
				}
			}))
			b.submit("job")
			b.stall(stalls)
			b.start()
			synctest.Wait()
			if got := b.runtime.runs(); got != runs {
				t.Errorf("after %d stalls it ran %d times, want %d", stalls, got, runs)
			}
			if runs == 0 {
				b.wantRecord("job", record.Failed, "stalled")
				s, _ := b.queue.Status(t.Context(), "job")
				if s.State != worker.Dead || s.Reason != "stalled" {
					t.Errorf("status is %q, %q, want dead, stalled", s.State, s.Reason)
				}
				if n := b.notified(); len(n) != 1 {
					t.Errorf("notified %d times, want 1", len(n))
				}
			}
			b.end()
		})
	}
}

// A crash of a worker is a stall, not an attempt: a job with one attempt survives
// it.
func TestStallIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(leased, func(_ *bench, c *worker.Config) { c.Attempts = 1 }))
		b.submit("job")
		b.stall(2)
		b.start()
		synctest.Wait()
		r := b.wantRecord("job", record.Completed, "")
		if !r.StalledRepick || *r.Attempt != 1 {
			t.Errorf("record says stalledRepick %v, attempt %d; want true, 1", r.StalledRepick, *r.Attempt)
		}
		b.end()
	})
}

// A job whose attempts are spent, as after a change of the config, is given up.
func TestAttemptsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Attempts = 2 })
		b.submit("job")
		for range 2 {
			d, _ := b.queue.Next(t.Context())
			d.Retry(t.Context(), 0, nil)
		}
		b.start()
		synctest.Wait()
		b.wantRecord("job", record.Failed, "attempts-exhausted")
		if b.state("job") != worker.Dead || b.runtime.runs() != 0 {
			t.Errorf("state is %q after %d runs, want dead after none", b.state("job"), b.runtime.runs())
		}
		b.end()
	})
}

// A retry's record keeps the slot time of the attempts before it.
func TestEarlierAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			r, err := takes(time.Minute)(ctx, s, io)
			r.Code = 1
			return r, err
		}
		b.submit("job")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		r := b.wantRecord("job", record.Failed, "container-infra-exit")
		if len(r.Earlier) != 2 || *r.Attempt != 3 {
			t.Errorf("record has attempt %d and %d earlier ones, want 3 and 2", *r.Attempt, len(r.Earlier))
		}
		b.end()
	})
}

// A run whose lease is lost settles nothing and writes no record. OnLeaseLost
// says whether it is stopped.
func TestLeaseLost(t *testing.T) {
	tests := []struct {
		choice worker.OnLeaseLost
		ends   time.Duration // of the run, after the lease is lost
	}{
		{"", 2 * time.Second}, {worker.StopRun, 2 * time.Second}, {worker.FinishRun, time.Minute},
	}
	for _, tt := range tests {
		t.Run(string(tt.choice), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, both(leased, func(_ *bench, c *worker.Config) { c.OnLeaseLost = tt.choice }))
				var took time.Duration
				b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
					begin := time.Now()
					r, err := takes(time.Minute)(ctx, s, io)
					took = time.Since(begin)
					return r, err
				}
				b.submit("job")
				b.start()
				synctest.Wait()
				b.queue.Expire()
				other, err := b.queue.Next(t.Context()) // another worker
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if took != tt.ends {
					t.Errorf("the run went on for %v, want %v", took, tt.ends)
				}
				if _, err := b.records.Read("job"); err == nil {
					t.Error("a run that settles nothing has a record")
				}
				if n := b.worker.Stats().LeaseLost; n != 1 {
					t.Errorf("Stats().LeaseLost = %d, want 1", n)
				}
				if err := other.Done(t.Context(), nil); err != nil {
					t.Errorf("the other worker's Done: %v", err)
				}
				b.wantReleased()
				b.end()
			})
		})
	}
}

// A lease is kept through the wait in line and a run that takes many of it.
func TestLeaseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(budgetOf(4096, 200), func(b *bench, c *worker.Config) {
			c.Slots = 2
			b.queue.Lease = time.Second
		}))
		b.runtime.run = takes(10 * time.Minute)
		b.submit("first", "second")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, id := range []string{"first", "second"} {
			b.wantRecord(id, record.Completed, "")
		}
		if got := b.runtime.runs(); got != 2 {
			t.Errorf("ran %d times, want 2", got)
		}
		b.end()
	})
}

// A job that never fits goes from host to host, and is refused by the last one.
func TestNeverFitsAnyHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := &worker.Memory{}
		hosts := []string{"host-1", "host-2", "host-3"}
		var benches []*bench
		for _, host := range hosts {
			b := newBench(t, both(budgetOf(100, 100), hostsAre(hosts...), func(b *bench, c *worker.Config) {
				b.queue = queue
				c.Host, c.Queue = host, queue.On(host)
			}))
			benches = append(benches, b)
		}
		benches[0].submit("job")
		for _, b := range benches {
			b.start()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		records, notices := 0, 0
		for _, b := range benches {
			if r, err := b.records.Read("job"); err == nil {
				records++
				if r.Reason != "job-size-exceeds-host" || r.HostBudget == nil || r.Capacity != nil {
					t.Errorf("record = %+v, want a refusal with the host's budget", r)
				}
			}
			notices += len(b.notified())
			b.end()
		}
		if records != 1 || notices != 1 {
			t.Errorf("%d hosts refused the job and %d told of it, want 1 and 1", records, notices)
		}
		s, _ := queue.Status(t.Context(), "job")
		if len(s.Job.Passed) != 2 {
			t.Errorf("the job was passed on by %v, want two hosts", s.Job.Passed)
		}
	})
}

// A job that one host is too small for runs on the one that has room.
func TestPassedToALargerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := &worker.Memory{}
		small := newBench(t, both(budgetOf(100, 100), hostsAre("host-1", "host-2"), func(b *bench, c *worker.Config) {
			b.queue, c.Queue = queue, queue.On("host-1")
		}))
		large := newBench(t, both(budgetOf(1<<20, 1<<20), hostsAre("host-1", "host-2"), func(b *bench, c *worker.Config) {
			b.queue, c.Host, c.Queue = queue, "host-2", queue.On("host-2")
		}))
		small.submit("job")
		small.start()
		synctest.Wait()
		large.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		large.wantRecord("job", record.Completed, "")
		small.end()
		large.end()
	})
}

// Refusals of a job that was passed on for ever are bounded.
func TestPassedOnTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(budgetOf(100, 100), hostsAre("host-1", "host-that-never-takes-it")))
		b.submit("job")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		b.wantRecord("job", record.Policy, "job-size-exceeds-host")
		b.end()
	})
}

// What runs is listed while it runs.
func TestLiveEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &livejobs.Registry{}
		b := newBench(t, both(describes(worker.Description{Record: record.Run{Project: "project-1"}}, nil), func(_ *bench, c *worker.Config) { c.Live = live }))
		b.runtime.run = takes(time.Minute)
		b.submit("job")
		b.start()
		synctest.Wait()
		running, _ := live.Jobs()
		want := []livejobs.Running{{ID: "job", Project: "project-1", Mem: 4096, CPU: 200, At: time.Now()}}
		if diff := cmp.Diff(want, running); diff != "" {
			t.Errorf("Jobs: %s (-want +got)", diff)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if running, orphans := live.Jobs(); len(running)+len(orphans) != 0 {
			t.Errorf("Jobs after the run: %v, %v", running, orphans)
		}
		r := b.wantRecord("job", record.Completed, "")
		if got := r.StartedAt; got != record.At(want[0].At) {
			t.Errorf("record starts at %s, the live entry at %s", got, record.At(want[0].At))
		}
		b.end()
	})
}

// The record is on disk before the queue hears that the job is done.
func TestRecordBeforeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		b := newBench(t, func(b *bench, c *worker.Config) {
			c.Queue = watchedQueue{b.queue, func(what string) {
				if _, err := b.records.Read("job"); err != nil {
					t.Errorf("%s before there is a record: %v", what, err)
				}
				order = append(order, what)
			}}
		})
		b.runtime.run = exits(2)
		b.submit("job")
		b.start()
		synctest.Wait()
		if diff := cmp.Diff([]string{"done"}, order); diff != "" {
			t.Errorf("told the queue: %s (-want +got)", diff)
		}
		b.end()
	})
}

type watchedQueue struct {
	worker.Queue
	told func(what string)
}

func (q watchedQueue) Next(ctx context.Context) (worker.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	return watchedDelivery{d, q.told}, err
}

type watchedDelivery struct {
	worker.Delivery
	told func(what string)
}

func (d watchedDelivery) Done(ctx context.Context, rec *record.Record) error {
	d.told("done")
	return d.Delivery.Done(ctx, rec)
}
