package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// TestOneJob runs one job that exits with each class's code.
func TestOneJob(t *testing.T) {
	tests := []struct {
		code    int
		outcome record.Outcome
		reason  exit.Reason
		state   worker.State
		runs    int
		kinds   []worker.EventKind
		notices int
	}{
		{0, record.Completed, "", worker.Settled, 1, []worker.EventKind{"picked", "started", "ended"}, 0},
		{2, record.Policy, "runner-policy", worker.Settled, 1, []worker.EventKind{"picked", "started", "ended"}, 1},
		{1, record.Failed, "container-infra-exit", worker.Dead, 3, []worker.EventKind{
			"picked", "started", "retried", "picked", "started", "retried", "picked", "started", "dead",
		}, 1},
		{137, record.Failed, "container-unknown-exit", worker.Dead, 3, []worker.EventKind{
			"picked", "started", "retried", "picked", "started", "retried", "picked", "started", "dead",
		}, 1},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.runtime.run = exits(tt.code)
				b.submit("job")
				b.start()
				time.Sleep(time.Hour)
				synctest.Wait()
				b.wantRecord("job", tt.outcome, tt.reason)
				if got := b.state("job"); got != tt.state {
					t.Errorf("state is %q, want %q", got, tt.state)
				}
				if got := b.runtime.runs(); got != tt.runs {
					t.Errorf("ran %d times, want %d", got, tt.runs)
				}
				if diff := cmp.Diff(tt.kinds, b.kinds("job")); diff != "" {
					t.Errorf("events: %s (-want +got)", diff)
				}
				if got := b.notified(); len(got) != tt.notices {
					t.Errorf("notified %d times, want %d: %+v", len(got), tt.notices, got)
				}
				b.wantReleased()
				if err := b.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// A retried job comes back after the backoff, and its last failure alone is told.
func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		var starts []time.Duration
		begin := time.Now()
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			starts = append(starts, time.Since(begin))
			if n := len(b.notified()); n != 0 {
				t.Errorf("notified before the last attempt")
			}
			return container.Result{Code: 1}, nil
		}
		b.submit("job")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("attempts started after: %s (-want +got)", diff)
		}
		if n := b.notified(); len(n) != 1 || n[0].ID != "job:3" {
			t.Errorf("notifications = %+v, want one, job:3", n)
		}
		b.end()
	})
}

// A gate is one way through the pickup before a job's run.
type gate struct {
	name    string
	change  func(b *bench, c *worker.Config)
	job     worker.Job // its id is set
	runs    int        // of the first delivery
	outcome record.Outcome
	reason  exit.Reason
	state   worker.State // after the first delivery
	log     string
}

var (
	errBroken = errors.New("broken")
	errAway   = fmt.Errorf("ask the runtime: %w", container.ErrUnavailable)
)

func prepares(p worker.Preparation, err error) func(*bench, *worker.Config) {
	return func(_ *bench, c *worker.Config) {
		c.Hooks.Prepare = func(context.Context, worker.Pickup) (worker.Preparation, error) { return p, err }
	}
}

func describes(d worker.Description, err error) func(*bench, *worker.Config) {
	return func(_ *bench, c *worker.Config) {
		c.Hooks.Describe = func(context.Context, worker.Job) (worker.Description, error) { return d, err }
	}
}

func both(changes ...func(*bench, *worker.Config)) func(*bench, *worker.Config) {
	return func(b *bench, c *worker.Config) {
		for _, change := range changes {
			change(b, c)
		}
	}
}

func budgetOf(mem, cpu int64) func(*bench, *worker.Config) {
	return func(_ *bench, c *worker.Config) {
		c.Budget = jobsize.Budget{Mem: jobsize.Known(mem), CPU: jobsize.Known(cpu)}
	}
}

func hostsAre(names ...string) func(*bench, *worker.Config) {
	return func(_ *bench, c *worker.Config) {
		c.Hosts = func(context.Context) ([]string, error) { return names, nil }
	}
}

func ownReasons(_ *bench, c *worker.Config) { c.Reasons = []exit.Reason{"not-for-us"} }

var gates = []gate{
	{name: "nothing in the way", runs: 1, outcome: record.Completed, state: worker.Settled},

	{name: "leftovers can't be listed", change: func(b *bench, _ *worker.Config) { b.runtime.listErr = errBroken },
		outcome: record.Failed, reason: "container-never-started", state: worker.Delayed, log: "leftovers_failed"},
	{name: "leftovers unknown, the runtime is away", change: func(b *bench, _ *worker.Config) { b.runtime.listErr = errAway },
		state: worker.Delayed, log: "runtime_away"},

	{name: "describe refuses", change: both(describes(worker.Description{}, &worker.Refusal{Reason: "not-for-us", Why: "bad-kind"}), ownReasons),
		outcome: record.Policy, reason: "not-for-us", state: worker.Settled, log: "job_refused"},
	{name: "describe fails", change: describes(worker.Description{}, errBroken),
		outcome: record.Failed, reason: "worker-error", state: worker.Delayed, log: "describe_failed"},

	{name: "paused", change: func(_ *bench, c *worker.Config) {
		c.Hooks.Pause = func(context.Context, worker.Pickup) (time.Time, error) { return time.Now().Add(time.Hour), nil }
	}, state: worker.Delayed, log: "job_paused"},
	{name: "a pause that is over", change: func(_ *bench, c *worker.Config) {
		c.Hooks.Pause = func(context.Context, worker.Pickup) (time.Time, error) { return time.Now().Add(-time.Hour), nil }
	}, runs: 1, outcome: record.Completed, state: worker.Settled},
	{name: "pause fails", change: func(_ *bench, c *worker.Config) {
		c.Hooks.Pause = func(context.Context, worker.Pickup) (time.Time, error) { return time.Time{}, errBroken }
	}, outcome: record.Failed, reason: "worker-error", state: worker.Delayed, log: "pause_failed"},

	{name: "a size that is none", job: worker.Job{Size: jobsize.Request{Memory: "lots"}},
		outcome: record.Policy, reason: "prepare-refused", state: worker.Settled, log: "size_refused"},
	{name: "just fits", change: budgetOf(4096, 200), runs: 1, outcome: record.Completed, state: worker.Settled},
	{name: "never fits the memory", change: budgetOf(4095, 200),
		outcome: record.Policy, reason: "job-size-exceeds-host", state: worker.Settled, log: "job_never_fits"},
	{name: "never fits the CPUs", change: budgetOf(4096, 199),
		outcome: record.Policy, reason: "job-size-exceeds-host", state: worker.Settled, log: "job_never_fits"},
	{name: "never fits its share", change: both(budgetOf(8192, 400), describes(worker.Description{SharePercent: 49}, nil)),
		outcome: record.Policy, reason: "job-size-exceeds-share", state: worker.Settled, log: "job_never_fits"},
	{name: "just fits its share", change: both(budgetOf(8192, 400), describes(worker.Description{SharePercent: 50}, nil)),
		runs: 1, outcome: record.Completed, state: worker.Settled},
	{name: "never fits, another host may", change: both(budgetOf(1, 1), hostsAre("host-1", "host-2")),
		state: worker.Delayed, log: "job_passed_on"},
	{name: "never fits, alone", change: both(budgetOf(1, 1), hostsAre("host-1")),
		outcome: record.Policy, reason: "job-size-exceeds-host", state: worker.Settled, log: "job_never_fits"},
	{name: "never fits, bound to this host", change: both(budgetOf(1, 1), hostsAre("host-1", "host-2")), job: worker.Job{Host: "host-1"},
		outcome: record.Policy, reason: "job-size-exceeds-host", state: worker.Settled, log: "job_never_fits"},

	{name: "image missing", change: describes(worker.Description{Image: "none"}, nil),
		outcome: record.Policy, reason: "job-image-missing", state: worker.Settled, log: "image_missing"},
	{name: "image unknown, the runtime is away", change: both(describes(worker.Description{Image: "none"}, nil), func(b *bench, _ *worker.Config) { b.runtime.imageErr = errAway }),
		state: worker.Delayed, log: "runtime_away"},
	{name: "image unknown", change: both(describes(worker.Description{Image: "none"}, nil), func(b *bench, _ *worker.Config) { b.runtime.imageErr = errBroken }),
		outcome: record.Failed, reason: "container-never-started", state: worker.Delayed, log: "image_failed"},
	{name: "image there", change: both(describes(worker.Description{Image: "there"}, nil), func(b *bench, _ *worker.Config) {
		b.runtime.images = map[string]container.Image{"there": {}}
	}), runs: 1, outcome: record.Completed, state: worker.Settled},

	{name: "prepare refuses", change: prepares(worker.Preparation{}, fmt.Errorf("clone: %w", &worker.Refusal{Reason: "model-not-allowed"})),
		outcome: record.Policy, reason: "model-not-allowed", state: worker.Settled, log: "job_refused"},
	{name: "prepare refuses with garbage", change: prepares(worker.Preparation{}, &worker.Refusal{Reason: "No such /repo!", Why: "Because\n"}),
		outcome: record.Policy, reason: "prepare-refused", state: worker.Settled, log: "job_refused"},
	{name: "prepare refuses with a token that nobody listed", change: prepares(worker.Preparation{}, &worker.Refusal{Reason: "not-for-us"}),
		outcome: record.Policy, reason: "prepare-refused", state: worker.Settled, log: "job_refused"},
	{name: "prepare fails", change: prepares(worker.Preparation{}, errBroken),
		outcome: record.Failed, reason: "worker-error", state: worker.Delayed, log: "prepare_failed"},
}

func TestGates(t *testing.T) {
	for _, g := range gates {
		t.Run(g.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(b *bench, c *worker.Config) {
					c.Queue = b.queue.On(c.Host)
					if g.change != nil {
						g.change(b, c)
					}
				})
				g.job.ID = "job"
				b.submitJob(g.job)
				b.start()
				synctest.Wait()
				if got := b.runtime.runs(); got != g.runs {
					t.Errorf("ran %d times, want %d", got, g.runs)
				}
				if got := b.state("job"); got != g.state {
					t.Errorf("state is %q, want %q", got, g.state)
				}
				if g.outcome != "" {
					b.wantRecord("job", g.outcome, g.reason)
				} else if _, err := b.records.Read("job"); err == nil {
					t.Error("a deferred job has a record")
				}
				if g.log != "" && !b.log.has(g.log) {
					t.Errorf("log has no %s: %s", g.log, b.log.text())
				}
				want := 0
				if g.outcome == record.Policy {
					want = 1
				}
				if got := b.notified(); len(got) != want {
					t.Errorf("notified %d times, want %d", len(got), want)
				}
				b.wantReleased()
				if err := b.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// TestReleaseOnce fails the job at each step in turn, in each way, and counts
// that what was taken is given back once.
func TestReleaseOnce(t *testing.T) {
	steps := []string{"leftovers", "settled", "earlier", "describe", "pause", "size", "image", "prepare", "budget", "admit", "run", "classify", "record", "notify", "settle", "release"}
	// A panic at the release itself would be the worker's own.
	ways := map[string]func(b *bench, cancelPoll time.Duration){
		"cancel":   func(b *bench, poll time.Duration) { b.queue.Cancel(context.Background(), "job"); time.Sleep(poll) },
		"shutdown": func(b *bench, _ time.Duration) { b.stop() },
		"panic":    func(*bench, time.Duration) { panic("at a step") },
		"lease lost": func(b *bench, poll time.Duration) {
			b.queue.Expire()
			ctx, cancel := context.WithTimeout(context.Background(), poll)
			defer cancel()
			b.queue.Next(ctx) // another worker's, if it is not settled
			time.Sleep(poll)
		},
	}
	for way, do := range ways {
		for _, at := range steps {
			if way == "panic" && at == "release" {
				continue
			}
			t.Run(way+" at "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					made, cleaned, reached := 0, 0, false
					b := newBench(t, func(b *bench, c *worker.Config) {
						c.Attempts = 1
						leased(b, c)
						b.runtime.run = exits(2)
						c.Hooks.Prepare = func(context.Context, worker.Pickup) (worker.Preparation, error) {
							made++
							return worker.Preparation{Cleanup: func(context.Context) error { cleaned++; return nil }}, nil
						}
						c.SetStep(func(name string) {
							if name == at && !reached {
								reached = true
								do(b, 3*time.Second)
							}
						})
					})
					b.submit("job")
					b.start()
					time.Sleep(time.Hour)
					synctest.Wait()
					if !reached {
						t.Fatalf("the step was not reached")
					}
					if made != cleaned {
						t.Errorf("prepared %d times, cleaned up %d times", made, cleaned)
					}
					b.wantReleased()
					b.end()
				})
			})
		}
	}
}

// What fails a run itself releases everything too.
func TestRunFails(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		result  container.Result
		outcome record.Outcome
		reason  exit.Reason
		state   worker.State
	}{
		{"runtime away", errAway, container.Result{}, "", "", worker.Delayed},
		{"an error that nobody knows", errBroken, container.Result{}, record.Failed, "worker-error", worker.Delayed},
		{"spec that no run may have", fmt.Errorf("run: %w", container.ErrSpec), container.Result{}, record.Policy, "prepare-refused", worker.Settled},
		{"image gone", fmt.Errorf("run: %w", container.ErrImageMissing), container.Result{}, record.Policy, "job-image-missing", worker.Settled},
		{"never started", nil, container.Result{NeverStarted: true, Code: 127}, record.Failed, "container-never-started", worker.Delayed},
		{"never started, and the runtime gives no code", nil, container.Result{NeverStarted: true}, record.Failed, "container-never-started", worker.Delayed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.runtime.run = func(context.Context, container.Spec, container.IO) (container.Result, error) {
					return tt.result, tt.err
				}
				b.submit("job")
				b.start()
				synctest.Wait()
				if tt.outcome != "" {
					b.wantRecord("job", tt.outcome, tt.reason)
				} else if _, err := b.records.Read("job"); err == nil {
					t.Error("a job that is handed back has a record")
				}
				if got := b.state("job"); got != tt.state {
					t.Errorf("state is %q, want %q", got, tt.state)
				}
				b.wantReleased()
				b.end()
			})
		})
	}
}

// A runtime that is away for an hour costs a job neither an attempt nor a
// notification: it waits and then runs.
func TestRuntimeAway(t *testing.T) {
	tests := []struct {
		name string
		away func(f *fakeRuntime)
	}{
		{"when leftovers are listed", func(f *fakeRuntime) { f.listErr = errAway }},
		{"when the image is looked up", func(f *fakeRuntime) { f.imageErr = errAway }},
		{"when the run is to start", func(f *fakeRuntime) { f.runErr = errAway }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, describes(worker.Description{Image: "image"}, nil))
				b.runtime.images = map[string]container.Image{"image": {}}
				tt.away(b.runtime)
				b.submit("job")
				b.start()
				time.Sleep(time.Hour)
				synctest.Wait()
				if _, err := b.records.Read("job"); err == nil {
					t.Error("a job that waits for its runtime has a record")
				}
				if got := b.kinds("job"); !slices.Contains(got, worker.JobHandedBack) || slices.Contains(got, worker.JobRetried) {
					t.Errorf("events are %v, want the job handed back and never retried", got)
				}
				if s := b.worker.Stats(); s.Deferred < 100 || s.Deferred > 1000 {
					t.Errorf("handed back %d times in an hour, want every few seconds", s.Deferred)
				}
				b.runtime.mu.Lock()
				b.runtime.listErr, b.runtime.imageErr, b.runtime.runErr = nil, nil, nil
				b.runtime.mu.Unlock()
				time.Sleep(time.Minute)
				synctest.Wait()
				if r := b.wantRecord("job", record.Completed, ""); *r.Attempt != 1 {
					t.Errorf("it ran as attempt %d, want 1", *r.Attempt)
				}
				if n := b.notified(); len(n) != 0 {
					t.Errorf("notified %d times, want none", len(n))
				}
				b.wantReleased()
				b.end()
			})
		})
	}
}

func TestTimeLimit(t *testing.T) {
	tests := []struct {
		name  string
		own   time.Duration
		after time.Duration
	}{
		{"default", 0, 30 * time.Minute},
		{"its own", time.Minute, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, prepares(worker.Preparation{TimeLimit: tt.own}, nil))
				b.runtime.run = untilStopped
				b.submit("job")
				b.start()
				time.Sleep(tt.after - time.Second)
				synctest.Wait()
				if got := b.state("job"); got != worker.Running {
					t.Fatalf("state is %q a second before its limit", got)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				b.wantRecord("job", record.Policy, "job-timeout")
				b.end()
			})
		})
	}
}

// A key goes only to a container that can sign with it.
func TestKeyIssued(t *testing.T) {
	signs := container.Image{Capabilities: []string{"other", "exitAuth"}}
	plain := container.Image{Capabilities: []string{"exitauth", "exitAuth2"}}
	tests := []struct {
		name       string
		image      string
		supervisor []string
		want       bool
	}{
		{"image that signs", "signs", nil, true},
		{"image that does not", "plain", nil, false},
		{"mounted supervisor", "plain", []string{"/supervisor"}, true},
		{"no image: the process runtime", "", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, both(
					describes(worker.Description{Image: tt.image}, nil),
					prepares(worker.Preparation{Spec: container.Spec{Supervisor: tt.supervisor}}, nil),
				))
				b.runtime.images = map[string]container.Image{"signs": signs, "plain": plain}
				b.submit("a", "b")
				b.start()
				synctest.Wait()
				b.end()
				if got := b.runtime.runs(); got != 2 {
					t.Fatalf("ran %d times, want 2", got)
				}
				keys := []string{b.runtime.ios[0].Key.Reveal(), b.runtime.ios[1].Key.Reveal()}
				if got := keys[0] != ""; got != tt.want {
					t.Errorf("key issued: %v, want %v", got, tt.want)
				}
				if tt.want && keys[0] == keys[1] {
					t.Error("two runs got one key")
				}
				for _, key := range keys {
					if key != "" && strings.Contains(b.log.text(), key) {
						t.Error("the log shows a key")
					}
				}
			})
		})
	}
}

// The worker decides who and how large a run is, whatever Prepare says.
func TestSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(
			describes(worker.Description{Image: "image"}, nil),
			prepares(worker.Preparation{Spec: container.Spec{
				Image: "other", Job: "other", Attempt: 9, Instance: "other", Host: "other",
				Size: jobsize.Size{Mem: 1}, CPUs: jobsize.Off(), Args: []string{"true"},
			}}, nil),
			func(b *bench, c *worker.Config) {
				c.Instance = "instance-1"
				b.runtime.images = map[string]container.Image{"image": {}}
				b.runtime.facts = container.Facts{CPUs: jobsize.Known(4), Memory: jobsize.Known(64 << 30)}
			},
		))
		b.submitJob(worker.Job{ID: "job", Size: jobsize.Request{Memory: "256m", CPUs: "0.5"}})
		b.start()
		synctest.Wait()
		b.end()
		got := b.runtime.specs[0]
		if !strings.HasPrefix(got.Name, "dispatch-") {
			t.Errorf("name is %q, want a fresh one", got.Name)
		}
		want := container.Spec{
			Name: got.Name, Image: "image", Job: "job", Attempt: 1, Instance: "instance-1", Host: "host-1",
			Size: jobsize.Size{Mem: 256, CPU: 50, Source: jobsize.FromProject}, CPUs: jobsize.Known(375), Args: []string{"true"},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(jobsize.Limit{})); diff != "" {
			t.Errorf("Spec: %s (-want +got)", diff)
		}
	})
}

// What an earlier pickup left running is stopped before the job starts again.
func TestLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		gone := false
		b.runtime.add(container.Spec{Name: "left", Host: "host-1", Job: "job", Attempt: 1}, func() { gone = true })
		b.runtime.add(container.Spec{Name: "of-another", Host: "host-1", Job: "job-2", Attempt: 1}, func() { t.Error("another job's container was stopped") })
		b.runtime.run = func(context.Context, container.Spec, container.IO) (container.Result, error) {
			if !gone {
				t.Error("started beside what was left")
			}
			return container.Result{}, nil
		}
		b.submit("job")
		b.start()
		synctest.Wait()
		b.wantRecord("job", record.Completed, "")
		b.end()
	})
}

// A leftover that can't be stopped keeps the job from starting a second time.
func TestLeftoverStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.runtime.add(container.Spec{Name: "left", Host: "host-1", Job: "job", Attempt: 1}, func() {})
		b.runtime.deaf = true
		b.submit("job")
		b.start()
		time.Sleep(65 * time.Second)
		synctest.Wait()
		b.wantRecord("job", record.Failed, "container-never-started")
		b.runtime.setDeaf(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.wantRecord("job", record.Completed, "")
		if got := b.runtime.runs(); got != 1 {
			t.Errorf("ran %d times, want 1", got)
		}
		b.end()
	})
}

// An orphan keeps its share of the host until the runtime says that it is gone.
func TestOrphanKeepsItsShare(t *testing.T) {
	for _, how := range []container.Result{{Orphan: true, Aborted: true, Cause: container.ErrTimeout, Code: 137}, {Detached: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, both(budgetOf(4096, 200), func(_ *bench, c *worker.Config) { c.Attempts = 1 }))
			b.runtime.deaf = true
			b.runtime.run = func(context.Context, container.Spec, container.IO) (container.Result, error) {
				if b.runtime.runs() == 1 {
					return how, nil
				}
				return container.Result{}, nil
			}
			b.submit("job", "next")
			b.start()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			s := b.worker.Stats()
			if s.Orphans != 1 || s.InLine != 1 || s.Used.Mem != 4096 {
				t.Errorf("Stats() = %+v, want an orphan that holds its share and a job in line", s)
			}
			if !slices.Contains(b.kinds("job"), worker.JobOrphan) {
				t.Errorf("events of the job are %v, want an orphan", b.kinds("job"))
			}
			b.runtime.setDeaf(false)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			b.wantRecord("next", record.Completed, "")
			b.wantReleased()
			if err := b.end(); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// An orphan that outlives the worker is named.
func TestOrphanIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.runtime.deaf = true
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			r, err := untilStopped(ctx, s, io)
			r.Orphan = true
			return r, err
		}
		b.submit("job")
		b.start()
		synctest.Wait()
		err := b.end()
		var left *worker.LeftError
		if !errors.As(err, &left) || !slices.Equal(left.Orphans, []string{"job"}) {
			t.Errorf("Run: %v, want the orphan of job named", err)
		}
		b.wantRecord("job", record.Policy, "worker-abort")
	})
}
