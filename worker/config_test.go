package worker_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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

func TestNewChecksTheConfig(t *testing.T) {
	good := worker.Config{Queue: &worker.Memory{}, Runtime: &fakeRuntime{}, Records: &fakeRecords{}, Host: "h"}
	tests := []struct {
		field  string
		change func(*worker.Config)
	}{
		{"", func(*worker.Config) {}},
		{"Queue", func(c *worker.Config) { c.Queue = nil }},
		{"Runtime", func(c *worker.Config) { c.Runtime = nil }},
		{"", func(c *worker.Config) { c.Records = nil }},
		{"Host", func(c *worker.Config) { c.Host = "" }},
		{"Host", func(c *worker.Config) { c.Host = "a/b" }},
		{"Host", func(c *worker.Config) { c.Host = strings.Repeat("a", 65) }},
		{"Slots", func(c *worker.Config) { c.Slots = -1 }},
		{"Slots", func(c *worker.Config) { c.Slots = 16385 }},
		{"DefaultSize", func(c *worker.Config) { c.DefaultSize = jobsize.Request{Memory: "1024"} }},
		{"Attempts", func(c *worker.Config) { c.Attempts = -1 }},
		{"Stalls", func(c *worker.Config) { c.Stalls = -1 }},
		{"OnLeaseLost", func(c *worker.Config) { c.OnLeaseLost = "stay" }},
		{"Reasons", func(c *worker.Config) { c.Reasons = []exit.Reason{"Not a token"} }},
		{"TimeLimit", func(c *worker.Config) { c.TimeLimit = -1 }},
		{"Backoff.Base", func(c *worker.Config) { c.Backoff.Base = -1 }},
		{"Backoff.Max", func(c *worker.Config) { c.Backoff.Max = -1 }},
		{"Drain", func(c *worker.Config) { c.Drain = -1 }},
		{"StopLimit", func(c *worker.Config) { c.StopLimit = -1 }},
		{"CancelPoll", func(c *worker.Config) { c.CancelPoll = -1 }},
		{"HookLimit", func(c *worker.Config) { c.HookLimit = -1 }},
		{"PrepareLimit", func(c *worker.Config) { c.PrepareLimit = -1 }},
	}
	for _, tt := range tests {
		c := good
		tt.change(&c)
		w, err := worker.New(c)
		switch {
		case tt.field == "" && err != nil:
			t.Errorf("New: %v", err)
		case tt.field != "" && (w != nil || err == nil || !strings.Contains(err.Error(), "configure worker: "+tt.field+": ")):
			t.Errorf("New with a bad %s: %v, %v; want no worker and an error that names it", tt.field, w, err)
		}
	}
	_, err := worker.New(worker.Config{})
	for _, field := range []string{"Queue", "Runtime", "Host"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New without anything: %v, want %s named", err, field)
		}
	}
}

// Notification texts name no size, project, host, path or job, for any reason.
func TestNotificationTexts(t *testing.T) {
	const project, host, folder, job = "project-of-ours", "host-of-ours", "/home/somebody/src", "github:us/secret#12"
	reasons := append(record.Reasons(), "of-the-embedder")
	for _, reason := range reasons {
		if reason == exit.AwaitingInput || reason == exit.AwaitingApproval {
			continue // a completed run's
		}
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, both(
				describes(worker.Description{Record: record.Run{Project: project, Folder: folder, Kind: "local"}}, nil),
				prepares(worker.Preparation{}, &worker.Refusal{Reason: reason, Why: "over-cap"}),
				func(_ *bench, c *worker.Config) {
					c.Host = host
					c.Reasons = []exit.Reason{"of-the-embedder"}
				},
			))
			b.submitJob(worker.Job{ID: job, Size: jobsize.Request{Memory: "777m", CPUs: "0.77"}})
			b.start()
			synctest.Wait()
			b.end()
			n := b.notified()
			if len(n) != 1 || n[0].ID != job+":1" || n[0].Reason != reason || n[0].Class != worker.Policy {
				t.Fatalf("notifications = %+v, want one of %s", n, reason)
			}
			if n[0].Text == "" || !strings.HasSuffix(n[0].Text, ".") {
				t.Errorf("text of %s is %q, want a sentence", reason, n[0].Text)
			}
			for _, secret := range []string{project, host, folder, "home", job, "777", "0.77", "MiB", "CPU", "/"} {
				if strings.Contains(n[0].Text, secret) {
					t.Errorf("text of %s is %q, which shows %q", reason, n[0].Text, secret)
				}
			}
		})
	}
}

// A notification that fails is tried again, with the same id, and then let go.
func TestNotifyTriesAgain(t *testing.T) {
	for fails, want := range map[int]int{0: 1, 1: 2, 2: 3, 9: 3} {
		synctest.Test(t, func(t *testing.T) {
			var ids []string
			b := newBench(t, func(_ *bench, c *worker.Config) {
				c.Hooks.Notify = func(_ context.Context, n worker.Notification) error {
					ids = append(ids, n.ID)
					if len(ids) <= fails {
						return errBroken
					}
					return nil
				}
			})
			b.runtime.run = exits(2)
			b.submit("job")
			b.start()
			time.Sleep(time.Minute)
			synctest.Wait()
			b.end()
			if len(ids) != want {
				t.Errorf("with %d failures it was tried %d times, want %d", fails, len(ids), want)
			}
			for _, id := range ids {
				if id != "job:1" {
					t.Errorf("the notification's id is %q, want job:1", id)
				}
			}
		})
	}
}

// Output comes line by line, bounded, and to the log whole.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		log := &logText{}
		b := newBench(t, func(_ *bench, c *worker.Config) {
			c.OpenLog = func(string) io.WriteCloser { return nopCloser{log} }
			c.Hooks.Output = func(_ context.Context, p worker.Pickup, line []byte) error {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, string(line))
				return nil
			}
		})
		long := strings.Repeat("x", 10_000)
		output := "one\ntw" + "o\n\n" + long + "\nlast"
		b.runtime.run = func(_ context.Context, _ container.Spec, io container.IO) (container.Result, error) {
			for _, part := range []string{output[:6], output[6:20], output[20:9000], output[9000:]} {
				fmt.Fprint(io.Log, part)
			}
			return container.Result{}, nil
		}
		b.submit("job")
		b.start()
		synctest.Wait()
		b.end()
		want := []string{"one", "two", "", long[:4096], "last"}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("lines: %s (-want +got)", diff)
		}
		if log.text() != output {
			t.Errorf("the log has %d bytes, want all %d", len(log.text()), len(output))
		}
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A hook that takes lines slowly never holds up the job; what it misses is
// counted.
func TestOutputTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		b := newBench(t, func(_ *bench, c *worker.Config) {
			c.Hooks.Output = func(context.Context, worker.Pickup, []byte) error { <-free; return nil }
		})
		wrote := make(chan struct{})
		b.runtime.run = func(_ context.Context, _ container.Spec, io container.IO) (container.Result, error) {
			for range 1000 {
				fmt.Fprintln(io.Log, "line")
			}
			close(wrote)
			return container.Result{}, nil
		}
		b.submit("job")
		b.start()
		<-wrote
		close(free)
		synctest.Wait()
		if got := b.worker.Stats().LinesDropped; got < 700 || got > 750 {
			t.Errorf("Stats().LinesDropped = %d, want what does not fit 256", got)
		}
		b.wantRecord("job", record.Completed, "")
		b.end()
	})
}

// NoLog leaves a job out of the log.
func TestNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(prepares(worker.Preparation{NoLog: true}, nil), func(_ *bench, c *worker.Config) {
			c.OpenLog = func(string) io.WriteCloser { t.Error("the log was opened"); return nil }
		}))
		b.submit("job")
		b.start()
		synctest.Wait()
		b.end()
	})
}

// A job's own exit codes retry, and a kill by the host's memory is logged in
// numbers.
func TestRetryCodesAndHostOOM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, prepares(worker.Preparation{RetryCodes: []int{2}}, nil))
		b.runtime.run = func(_ context.Context, s container.Spec, _ container.IO) (container.Result, error) {
			switch s.Attempt {
			case 1:
				return container.Result{Code: 2}, nil
			case 2:
				return oomRun(withPeak(limit100 / 2)), nil
			}
			return oomRun(), nil
		}
		b.submit("job")
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		r := b.wantRecord("job", record.Policy, "oom-killed")
		if *r.Attempt != 3 || *r.ExitCode != 137 {
			t.Errorf("record has attempt %d and exit code %d, want 3 and 137", *r.Attempt, *r.ExitCode)
		}
		if text := b.log.text(); strings.Count(text, "oom_report_below_limit") != 1 || !strings.Contains(text, "mem_peak=52428800 mem_limit=104857600") {
			t.Errorf("the log does not tell of the host's kill once, in numbers:\n%s", text)
		}
		b.end()
	})
}

// What Artifacts adds is in the record, and what the worker knows is not changed
// by it.
func TestArtifacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, both(
			describes(worker.Description{Record: record.Run{Kind: "github", Repo: "us/ours", Number: 7, Project: "ours"}}, nil),
			prepares(worker.Preparation{Dir: "/the/folder"}, nil),
			func(_ *bench, c *worker.Config) {
				c.Hooks.Artifacts = func(_ context.Context, p worker.Pickup, run worker.Run) (record.Run, error) {
					if p.Dir != "/the/folder" || run.Outcome.Class != worker.Completed {
						t.Errorf("Artifacts got folder %q and %+v", p.Dir, run.Outcome)
					}
					r := run.Record
					r.Plan = &record.Plan{Outcome: "applied"}
					r.Outcome, r.JobID, r.Attempt, r.Host = record.Failed, "another", 9, "another"
					return r, nil
				}
			},
		))
		b.submit("job")
		b.start()
		synctest.Wait()
		b.end()
		r := b.wantRecord("job", record.Completed, "")
		if r.Plan == nil || r.Project != "ours" || r.Target != "us/ours#7" || r.Host != "host-1" || *r.Attempt != 1 {
			t.Errorf("record = %+v", r)
		}
	})
}

// Without records jobs end as they do with them, and a cancel is answered.
func TestNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ *bench, c *worker.Config) { c.Records = nil })
		b.runtime.run = func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
			switch s.Job {
			case "cancelled":
				return untilStopped(ctx, s, io)
			case "failed":
				return container.Result{Code: 1}, nil
			}
			return container.Result{}, nil
		}
		b.submit("failed", "good", "cancelled")
		b.start()
		synctest.Wait()
		b.cancel("cancelled")
		time.Sleep(time.Hour)
		synctest.Wait()
		for id, want := range map[string]worker.State{"failed": worker.Dead, "good": worker.Settled, "cancelled": worker.Settled} {
			if got := b.state(id); got != want {
				t.Errorf("state of %q is %q, want %q", id, got, want)
			}
		}
		if got := b.cancel("cancelled"); got != worker.CancelStopped {
			t.Errorf("Cancel answers %q, want stopped", got)
		}
		b.end()
	})
}

// The package comment lists the log events that there are.
func TestLogEventsAreDocumented(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	logged := regexp.MustCompile(`(?:\.(?:Info|Warn|Error)\(|(?:failed|refusedOrFailed|notStarted)\((?:reason\w+, )?)"([a-z_]+)"`)
	var events []string
	for _, file := range files {
		if file == "doc.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range logged.FindAllStringSubmatch(string(text), -1) {
			events = append(events, match[1])
		}
	}
	// These are put together from an event's kind.
	events = append(events, "job_ended", "job_retried", "job_dead")
	slices.Sort(events)
	events = slices.DeleteFunc(slices.Compact(events), func(e string) bool { return e == "job_" })
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "# Log events")
	documented := regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b|\borphan\b`).FindAllString(list, -1)
	slices.Sort(documented)
	if diff := cmp.Diff(events, documented); diff != "" {
		t.Errorf("log events: %s (-in the code +in the package comment)", diff)
	}
}
