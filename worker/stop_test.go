package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

func (b *bench) cancel(id string) worker.CancelAnswer {
	b.t.Helper()
	answer, err := b.queue.Cancel(context.Background(), id)
	if err != nil {
		b.t.Fatalf("Cancel(%q): %v", id, err)
	}
	return answer
}

func TestCancelRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.runtime.run = untilStopped
		b.submit("job")
		b.start()
		synctest.Wait()
		if got := b.cancel("job"); got != worker.CancelRequested {
			t.Errorf("Cancel answers %q, want requested", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		b.wantRecord("job", record.Policy, "operator-cancel")
		if got := b.cancel("job"); got != worker.CancelStopped {
			t.Errorf("Cancel now answers %q, want stopped", got)
		}
		if n := b.notified(); len(n) != 1 || n[0].Reason != "operator-cancel" {
			t.Errorf("notifications = %+v, want one", n)
		}
		b.wantReleased()
		b.end()
	})
}

// A job whose worker died is asked for its cancel at once: it may have come while
// there was nobody to ask.
func TestCancelWithoutAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(b *bench, c *worker.Config) {
			c.Queue = alteredQueue{b.queue, func(job *worker.Job) {
				job.Stalls = 1
				if _, err := b.queue.Cancel(context.Background(), "job"); err != nil {
					t.Error(err)
				}
			}}
		})
		b.runtime.run = untilStopped
		b.submit("job")
		b.start()
		synctest.Wait()
		b.wantRecord("job", record.Policy, "operator-cancel")
		b.end()
	})
}

// A job that is cancelled before its run starts nothing, wherever it stands.
func TestCancelBeforeTheRun(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	tests := map[string]func(*bench, *worker.Config){
		"describe": func(_ *bench, c *worker.Config) {
			c.Hooks.Describe = func(ctx context.Context, _ worker.Job) (worker.Description, error) {
				return worker.Description{}, hang(ctx)
			}
		},
		"pause": func(_ *bench, c *worker.Config) {
			c.Hooks.Pause = func(ctx context.Context, _ worker.Pickup) (time.Time, error) { return time.Time{}, hang(ctx) }
		},
		"prepare": func(_ *bench, c *worker.Config) {
			c.Hooks.Prepare = func(ctx context.Context, _ worker.Pickup) (worker.Preparation, error) {
				return worker.Preparation{}, hang(ctx)
			}
		},
		"in line": both(budgetOf(4096, 200), func(_ *bench, c *worker.Config) { c.Slots = 2 }),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, change)
				b.runtime.run = untilStopped
				if name == "in line" {
					b.submit("first")
				}
				b.start()
				synctest.Wait()
				b.submit("job")
				synctest.Wait()
				runs := b.runtime.runs()
				b.cancel("job")
				time.Sleep(3 * time.Second)
				synctest.Wait()
				b.wantRecord("job", record.Policy, "operator-cancel")
				if got := b.cancel("job"); got != worker.CancelStopped {
					t.Errorf("Cancel answers %q, want stopped", got)
				}
				if got := b.runtime.runs(); got != runs {
					t.Error("the job ran")
				}
				b.end()
			})
		})
	}
}

func TestCancelOtherStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.submit("waiting")
		b.submitJob(worker.Job{ID: "delayed", Delay: time.Hour})
		for _, id := range []string{"waiting", "delayed"} {
			for range 2 {
				if got := b.cancel(id); got != worker.CancelRemoved {
					t.Errorf("Cancel(%q) answers %q, want removed", id, got)
				}
			}
		}
		b.submit("done")
		b.start()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := b.cancel("done"); got != worker.CancelTooLate {
			t.Errorf("Cancel of a settled job answers %q, want too-late", got)
		}
		if _, err := b.queue.Cancel(t.Context(), "unknown"); !errors.Is(err, worker.ErrUnknownJob) {
			t.Errorf("Cancel of an unknown job: %v, want ErrUnknownJob", err)
		}
		if got := b.runtime.runs(); got != 1 {
			t.Errorf("ran %d times, want 1", got)
		}
		b.end()
	})
}

// A cancel that comes once the job has ended is too late, and the job is settled
// as what it was.
func TestCancelTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(b *bench, c *worker.Config) {
			c.SetStep(func(name string) {
				if name == "record" {
					b.queue.Cancel(context.Background(), "job")
				}
			})
		})
		b.submit("job")
		b.start()
		synctest.Wait()
		b.wantRecord("job", record.Completed, "")
		if got := b.cancel("job"); got != worker.CancelTooLate {
			t.Errorf("Cancel answers %q, want too-late", got)
		}
		b.end()
	})
}

// The first signal takes no more jobs and lets running ones go on for the drain
// time.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Slots, c.Drain = 2, time.Minute })
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			if s.Job == "short" {
				return takes(30*time.Second)(ctx, s, io)
			}
			return untilStopped(ctx, s, io)
		}
		b.submit("short", "long", "next")
		b.start()
		synctest.Wait()
		begin := time.Now()
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("Run returned after %v, want the drain time", took)
		}
		b.wantRecord("short", record.Completed, "")
		b.wantRecord("long", record.Policy, "worker-abort")
		if got := b.state("next"); got != worker.Waiting {
			t.Errorf("the job that waits is %q, want waiting", got)
		}
	})
}

// Run returns as soon as nothing is left, within the drain time.
func TestDrainEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Drain = time.Hour })
		b.runtime.run = takes(time.Minute)
		b.submit("job")
		b.start()
		synctest.Wait()
		begin := time.Now()
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("Run returned after %v, want when the job ended", took)
		}
	})
}

// The second signal ends the drain time.
func TestStopNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Drain = time.Hour })
		b.runtime.run = untilStopped
		b.submit("job")
		b.start()
		synctest.Wait()
		b.stop()
		time.Sleep(time.Second)
		b.worker.StopNow()
		b.worker.StopNow()
		begin := time.Now()
		if err := <-b.done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("Run returned %v after the second signal, want at once", took)
		}
		b.wantRecord("job", record.Policy, "worker-abort")
	})
}

// What has not started goes back to the queue with no attempt counted, at every
// step before the run.
func TestStopHandsBack(t *testing.T) {
	for _, at := range []string{"leftovers", "settled", "earlier", "describe", "pause", "size", "image", "prepare", "budget", "admit"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(b *bench, c *worker.Config) {
					c.Drain = time.Hour
					c.SetStep(func(name string) {
						if name == at {
							b.stop()
							synctest.Wait()
						}
					})
				})
				b.submit("job")
				b.start()
				if err := <-b.done; err != nil {
					t.Errorf("Run: %v", err)
				}
				s, _ := b.queue.Status(t.Context(), "job")
				if s.State != worker.Waiting || s.Attempts != 0 || s.Stalls != 0 {
					t.Errorf("status is %+v, want waiting with nothing counted", s)
				}
				if got := b.runtime.runs(); got != 0 {
					t.Errorf("ran %d times, want 0", got)
				}
			})
		})
	}
}

// A run that the runtime did not come to start before the worker stopped goes
// back as well.
func TestStopBeforeTheContainerStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			r, err := untilStopped(ctx, s, io)
			r.NeverStarted = true
			return r, err
		}
		b.submit("job")
		b.start()
		synctest.Wait()
		if err := b.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		s, _ := b.queue.Status(t.Context(), "job")
		if s.State != worker.Waiting || s.Attempts != 0 {
			t.Errorf("status is %+v, want waiting with nothing counted", s)
		}
		if _, err := b.records.Read("job"); err == nil {
			t.Error("a job that was handed back has a record")
		}
	})
}

// A runtime that never returns is named, and Run returns all the same.
func TestRunNamesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		b := newBench(t, nil)
		b.runtime.run = func(context.Context, container.Spec, container.IO) (container.Result, error) {
			<-free
			return container.Result{}, nil
		}
		b.submit("job")
		b.start()
		synctest.Wait()
		begin := time.Now()
		err := b.end()
		var left *worker.LeftError
		if !errors.As(err, &left) || !slices.Equal(left.Jobs, []string{"job"}) {
			t.Errorf("Run: %v, want the job named", err)
		}
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("Run returned after %v, want it bounded", took)
		}
		close(free)
	})
}

// A worker runs once.
func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		synctest.Wait()
		if err := b.worker.Run(t.Context()); !errors.Is(err, worker.ErrStarted) {
			t.Errorf("second Run: %v, want ErrStarted", err)
		}
		b.end()
	})
}
