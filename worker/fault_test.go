package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A faultyHook is a way in which a hook goes wrong. It may set a channel that
// frees a hook that hangs.
var faultyHooks = map[string]func(free <-chan struct{}) error{
	"panics":                func(<-chan struct{}) error { panic(secret) },
	"panics out of range":   func(<-chan struct{}) error { var s []int; return fmt.Errorf("%d", s[len(secret)]) },
	"ends its goroutine":    func(<-chan struct{}) error { runtime.Goexit(); return nil },
	"hangs":                 func(free <-chan struct{}) error { <-free; return nil },
	"returns an error":      func(<-chan struct{}) error { return errBroken },
	"panics with an error":  func(<-chan struct{}) error { panic(errors.New(secret)) },
	"returns a joined lot":  func(<-chan struct{}) error { return errors.Join(errBroken, errBroken) },
	"returns a nil refusal": func(<-chan struct{}) error { var r *worker.Refusal; return fmt.Errorf("x: %w", r) },
}

const secret = "sk-a-secret-of-the-job"

// What an attempt needs fails the attempt, and the job behind it runs.
func TestHooksThatAreNeeded(t *testing.T) {
	hooks := map[string]func(c *worker.Config, fault func() error){
		"Describe": func(c *worker.Config, fault func() error) {
			c.Hooks.Describe = func(_ context.Context, job worker.Job) (d worker.Description, err error) {
				if job.ID == "job" {
					err = fault()
				}
				return d, err
			}
		},
		"Pause": func(c *worker.Config, fault func() error) {
			c.Hooks.Pause = func(_ context.Context, p worker.Pickup) (until time.Time, err error) {
				if p.Job.ID == "job" {
					err = fault()
				}
				return until, err
			}
		},
		"Prepare": func(c *worker.Config, fault func() error) {
			c.Hooks.Prepare = func(_ context.Context, p worker.Pickup) (made worker.Preparation, err error) {
				if p.Job.ID == "job" {
					err = fault()
				}
				return made, err
			}
		},
	}
	for hook, set := range hooks {
		for name, fault := range faultyHooks {
			t.Run(hook+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					free := make(chan struct{})
					b := newBench(t, func(_ *bench, c *worker.Config) {
						set(c, func() error { return fault(free) })
					})
					b.submit("job", "next")
					b.start()
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					r := b.record("job")
					if r.Outcome != record.Failed || r.Reason != "worker-error" || *r.Attempt != 3 {
						t.Errorf("record says %q, %q, attempt %d; want failed, worker-error, 3", r.Outcome, r.Reason, *r.Attempt)
					}
					b.wantRecord("next", record.Completed, "")
					if n := b.notified(); len(n) != 1 {
						t.Errorf("notified %d times, want 1", len(n))
					}
					if strings.Contains(b.log.text(), secret) {
						t.Error("the log shows what the hook panicked with")
					}
					b.wantReleased()
					err := b.endFreeing(free)
					var left *worker.LeftError
					if name == "hangs" != errors.As(err, &left) {
						t.Errorf("Run: %v", err)
					}
				})
			})
		}
	}
}

// endFreeing stops the worker, then lets hooks that hang go.
func (b *bench) endFreeing(free chan struct{}) error {
	err := b.end()
	close(free)
	return err
}

// What only looks on changes nothing.
func TestHooksThatLookOn(t *testing.T) {
	hooks := map[string]func(c *worker.Config, fault func() error){
		"Observe": func(c *worker.Config, fault func() error) {
			c.Hooks.Observe = func(context.Context, worker.Event) error { return fault() }
		},
		"Notify": func(c *worker.Config, fault func() error) {
			c.Hooks.Notify = func(context.Context, worker.Notification) error { return fault() }
		},
		"Artifacts": func(c *worker.Config, fault func() error) {
			c.Hooks.Artifacts = func(context.Context, worker.Pickup, worker.Run) (record.Run, error) {
				return record.Run{}, fault()
			}
		},
		"Output": func(c *worker.Config, fault func() error) {
			c.Hooks.Output = func(context.Context, worker.Pickup, []byte) error { return fault() }
		},
		"Cleanup": func(c *worker.Config, fault func() error) {
			c.Hooks.Prepare = func(context.Context, worker.Pickup) (worker.Preparation, error) {
				return worker.Preparation{Cleanup: func(context.Context) error { return fault() }}, nil
			}
		},
	}
	for hook, set := range hooks {
		for name, fault := range faultyHooks {
			t.Run(hook+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					free := make(chan struct{})
					b := newBench(t, func(_ *bench, c *worker.Config) {
						set(c, func() error { return fault(free) })
					})
					b.runtime.run = func(_ context.Context, _ container.Spec, io container.IO) (container.Result, error) {
						if io.Log != nil {
							fmt.Fprintln(io.Log, "a line")
							fmt.Fprintln(io.Log, "another")
						}
						return container.Result{Code: 2}, nil
					}
					b.submit("job", "next")
					b.start()
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					for _, id := range []string{"job", "next"} {
						r := b.wantRecord(id, record.Policy, "runner-policy")
						if r.Host != "host-1" {
							t.Errorf("host of the record is %q", r.Host)
						}
						if got := b.state(id); got != worker.Settled {
							t.Errorf("state of %q is %q, want settled", id, got)
						}
					}
					b.wantReleased()
					b.endFreeing(free)
				})
			})
		}
	}
}

// A workspace that a hook makes after the worker stopped waiting for it is
// cleaned up when it comes.
func TestPrepareComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cleaned := false
		b := newBench(t, func(_ *bench, c *worker.Config) {
			c.Attempts = 1
			c.Hooks.Prepare = func(context.Context, worker.Pickup) (worker.Preparation, error) {
				time.Sleep(time.Hour)
				return worker.Preparation{Cleanup: func(context.Context) error { cleaned = true; return nil }}, nil
			}
		})
		b.submit("job")
		b.start()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		b.wantRecord("job", record.Failed, "worker-error")
		if got := b.worker.Stats().HooksHanging; len(got) != 1 || got[0] != "Prepare" {
			t.Errorf("Stats().HooksHanging = %v, want Prepare", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if !cleaned {
			t.Error("the late workspace was not cleaned up")
		}
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// While records can't be written nothing is lost, nothing runs twice, and the
// queue hears nothing; once they can, everything is settled.
func TestRecordStoreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(leased, func(_ *bench, c *worker.Config) { c.Slots = 2 }))
		b.records.fail(fmt.Errorf("write record: %w", syscall.ENOSPC))
		b.submit("a", "b", "c")
		b.start()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := b.runtime.runs(); got != 2 {
			t.Errorf("ran %d times, want as many as there are slots", got)
		}
		if got := b.worker.Stats().RecordsBlocked; got != 2 {
			t.Errorf("Stats().RecordsBlocked = %d, want 2", got)
		}
		if !b.log.has("record_write_failed") {
			t.Error("the log does not say so")
		}
		b.records.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			b.wantRecord(id, record.Completed, "")
			if got := b.state(id); got != worker.Settled {
				t.Errorf("state of %q is %q, want settled", id, got)
			}
		}
		if got := b.runtime.runs(); got != 3 {
			t.Errorf("ran %d times in all, want 3", got)
		}
		if got := b.worker.Stats().RecordsBlocked; got != 0 {
			t.Errorf("Stats().RecordsBlocked = %d at last, want 0", got)
		}
		b.end()
	})
}

// A worker that has to stop while a record can't be written names the job.
func TestStopWithAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.records.fail(syscall.ENOSPC)
		b.submit("job")
		b.start()
		synctest.Wait()
		err := b.end()
		var left *worker.LeftError
		if !errors.As(err, &left) || len(left.Jobs) != 1 {
			t.Errorf("Run: %v, want the job named", err)
		}
		if got := b.state("job"); got != worker.Running {
			t.Errorf("state is %q; a claim whose job has no record may not be settled", got)
		}
	})
}

// A flakyQueue fails every method twice before it works.
type flakyQueue struct {
	worker.Queue
	*flake
}

type flake struct {
	mu    sync.Mutex
	calls map[string]int
}

func (f *flake) fails(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[method]++
	if f.calls[method]%3 != 0 {
		return fmt.Errorf("%s: %w", method, errBroken)
	}
	return nil
}

func (q flakyQueue) Next(ctx context.Context) (worker.Delivery, error) {
	if err := q.fails("next"); err != nil {
		return nil, err
	}
	d, err := q.Queue.Next(ctx)
	return flakyDelivery{d, q.flake}, err
}

type flakyDelivery struct {
	worker.Delivery
	*flake
}

func (d flakyDelivery) Extend(ctx context.Context) (bool, error) {
	if err := d.fails("extend"); err != nil {
		return false, err
	}
	return d.Delivery.Extend(ctx)
}

func (d flakyDelivery) Done(ctx context.Context, rec *record.Record) error {
	if err := d.fails("done"); err != nil {
		return err
	}
	return d.Delivery.Done(ctx, rec)
}

func (d flakyDelivery) Retry(ctx context.Context, after time.Duration, rec *record.Record) error {
	if err := d.fails("retry"); err != nil {
		return err
	}
	return d.Delivery.Retry(ctx, after, rec)
}

func TestQueueThatErrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(b *bench, c *worker.Config) { c.Queue = flakyQueue{b.queue, &flake{}} })
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			r, err := takes(10*time.Second)(ctx, s, io)
			if s.Attempt == 1 {
				r.Code = 1
			}
			return r, err
		}
		b.submit("a", "b")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			r := b.wantRecord(id, record.Completed, "")
			if *r.Attempt != 2 || b.state(id) != worker.Settled {
				t.Errorf("%q is %q after attempt %d, want settled after 2", id, b.state(id), *r.Attempt)
			}
		}
		if got := b.runtime.runs(); got != 4 {
			t.Errorf("ran %d times, want 4", got)
		}
		if !b.log.has("queue_failed") || !b.log.has("lease_extend_failed") {
			t.Error("the log does not say what is wrong")
		}
		b.end()
	})
}

// A queue that gives nothing and no error is waited for, not spun on.
type emptyQueue struct{ calls *int }

func (q emptyQueue) Next(context.Context) (worker.Delivery, error) { *q.calls++; return nil, nil }

func TestQueueThatGivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Queue = emptyQueue{&calls} })
		b.start()
		time.Sleep(time.Hour)
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if calls > 200 {
			t.Errorf("asked %d times in an hour", calls)
		}
	})
}

// A wall clock that jumps back an hour confuses neither order nor age: what ended
// did not end before it began, and its record still settles the job.
func TestClockJumpsBack(t *testing.T) {
	for _, at := range []string{"leftovers", "admit", "run", "record"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var behind time.Duration
				b := newBench(t, func(_ *bench, c *worker.Config) {
					c.Now = func() time.Time {
						mu.Lock()
						defer mu.Unlock()
						return time.Now().Round(0).Add(-behind)
					}
					c.SetStep(func(name string) {
						if name == at {
							mu.Lock()
							defer mu.Unlock()
							behind = time.Hour
						}
					})
				})
				b.runtime.run = takes(time.Minute)
				created := time.Now()
				b.submitJob(worker.Job{ID: "job", Created: created})
				b.start()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				r := b.wantRecord("job", record.Completed, "")
				if r.EndedAt < r.StartedAt {
					t.Errorf("the run ended at %s, before it started at %s", r.EndedAt, r.StartedAt)
				}
				if why := record.Verdict(&r, record.Question{JobID: "job", Attempt: 1, Created: created}); why != record.Settles {
					t.Errorf("the record does not settle the job: %s", why)
				}
				b.end()
			})
		})
	}
}

func TestTenThousandJobsAtOnce(t *testing.T) {
	const jobs = 10_000
	b := newBench(t, func(_ *bench, c *worker.Config) {
		c.Slots = 64
		c.Hooks.Observe, c.Log = nil, nil
	})
	for i := range jobs {
		b.submit(fmt.Sprint("job-", i))
	}
	b.start()
	defer b.end()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for b.worker.Stats().Completed < jobs {
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d jobs done: %v", b.worker.Stats().Completed, jobs, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got := b.runtime.runs(); got != jobs {
		t.Errorf("ran %d times, want %d", got, jobs)
	}
	for id, n := range b.records.writes {
		if n != 1 {
			t.Errorf("%d records of %q were written, want 1", n, id)
		}
	}
}

func TestLargeJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := json.RawMessage(`"` + strings.Repeat("x", 10<<20) + `"`)
		b := newBench(t, func(_ *bench, c *worker.Config) {
			c.Hooks.Prepare = func(_ context.Context, p worker.Pickup) (worker.Preparation, error) {
				if !bytes.Equal(p.Job.Data, data) {
					t.Errorf("Prepare got %d bytes of data, want %d", len(p.Job.Data), len(data))
				}
				return worker.Preparation{Input: bytes.NewReader(p.Job.Data)}, nil
			}
		})
		b.submitJob(worker.Job{ID: "job", Data: data})
		b.start()
		synctest.Wait()
		b.wantRecord("job", record.Completed, "")
		if n := len(b.log.text()); n > 64<<10 {
			t.Errorf("the log has %d bytes", n)
		}
		b.end()
	})
}

// An alteredQueue hands jobs out otherwise than they were submitted.
type alteredQueue struct {
	worker.Queue
	alter func(*worker.Job)
}

func (q alteredQueue) Next(ctx context.Context) (worker.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	return alteredDelivery{d, q.alter}, err
}

type alteredDelivery struct {
	worker.Delivery
	alter func(*worker.Job)
}

func (d alteredDelivery) Job() worker.Job {
	job := d.Delivery.Job()
	d.alter(&job)
	return job
}

// A job under whose id no record can be kept is given up, not waited on.
func TestNoRecordForTheID(t *testing.T) {
	for _, id := range []string{"", ".", "..", "a\xffb", strings.Repeat("a", 1025)} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(b *bench, c *worker.Config) {
				c.Queue = alteredQueue{b.queue, func(job *worker.Job) {
					if job.ID == "job" {
						job.ID = id
					}
				}}
			})
			b.submit("job", "next")
			b.start()
			synctest.Wait()
			if got := b.state("job"); got != worker.Dead {
				t.Errorf("state of %.10q is %q, want dead", id, got)
			}
			b.wantRecord("next", record.Completed, "")
			if n := b.notified(); len(n) != 1 {
				t.Errorf("notified %d times, want 1", len(n))
			}
			b.end()
		})
	}
}
