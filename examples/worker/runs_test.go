package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/record"
)

// writeRuns keeps records of runs in a data folder. Each ran for a minute.
func writeRuns(t *testing.T, data string, runs ...record.Run) {
	t.Helper()
	store := &record.Store{Dir: logsFolder(data)}
	for _, run := range runs {
		run.EndedAt = run.StartedAt.Add(time.Minute)
		if err := store.Write(record.Build(run)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunsFilters(t *testing.T) {
	data := t.TempDir()
	now := time.Now()
	writeRuns(t, data,
		record.Run{JobID: "old", StartedAt: now.Add(-48 * time.Hour), Outcome: record.Completed, Project: "web", Host: "host-a"},
		record.Run{JobID: "new", StartedAt: now.Add(-time.Hour), Outcome: record.Completed, Project: "api", Host: "host-b"},
		record.Run{JobID: "refused", StartedAt: now.Add(-2 * time.Hour), Outcome: record.Policy, Reason: "job-timeout", Project: "web", Host: "host-b"},
		record.Run{JobID: "broken", StartedAt: now.Add(-3 * time.Hour), Outcome: record.Failed, Project: "web", Host: "host-a"},
	)
	if err := os.WriteFile(filepath.Join(logsFolder(data), "cut.json"), []byte(`{"jobId":`), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := `{"jobId":"newer","outcome":"completed","startedAt":"2026-05-01T10:00:00.000Z","endedAt":"2026-05-01T10:00:30.000Z","v":9}`
	if err := os.WriteFile(filepath.Join(logsFolder(data), "newer.json"), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		want   string // ids in order
		totals runTotals
	}{
		{"", "new refused broken old newer", runTotals{Runs: 5, Completed: 3, Policy: 1, Failed: 1, Seconds: 270, Unreadable: 1, Unparseable: 1}},
		{"-outcome completed", "new old newer", runTotals{Runs: 3, Completed: 3, Seconds: 150, Unreadable: 1, Unparseable: 1}},
		{"-outcome policy", "refused", runTotals{Runs: 1, Policy: 1, Seconds: 60, Unparseable: 1}},
		{"-outcome failed", "broken", runTotals{Runs: 1, Failed: 1, Seconds: 60, Unparseable: 1}},
		{"-project web", "refused broken old", runTotals{Runs: 3, Completed: 1, Policy: 1, Failed: 1, Seconds: 180, Unparseable: 1}},
		{"-on host-b", "new refused", runTotals{Runs: 2, Completed: 1, Policy: 1, Seconds: 120, Unparseable: 1}},
		{"-since 24h", "new refused broken", runTotals{Runs: 3, Completed: 1, Policy: 1, Failed: 1, Seconds: 180, Unparseable: 1}},
		{"-since 24h -project web -on host-a", "broken", runTotals{Runs: 1, Failed: 1, Seconds: 60, Unparseable: 1}},
		// The totals are of all that match.
		{"-project web -n 1", "refused", runTotals{Runs: 3, Completed: 1, Policy: 1, Failed: 1, Seconds: 180, Unparseable: 1}},
		{"-project other", "", runTotals{Unparseable: 1}},
	} {
		args := strings.Fields(tt.args)
		code, out, errs := typed(t, "", append([]string{"runs", "-json", "-data", data}, args...)...)
		var got runList
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
			t.Fatalf("runs -json %s = %d, %s: %v", tt.args, code, errs, err)
		}
		var ids []string
		for _, r := range got.Runs {
			ids = append(ids, r.JobID)
		}
		if diff := cmp.Diff(tt.want, strings.Join(ids, " ")); diff != "" {
			t.Errorf("runs %s (-want +got):\n%s", tt.args, diff)
		}
		if diff := cmp.Diff(tt.totals, got.Totals); diff != "" {
			t.Errorf("totals of runs %s (-want +got):\n%s", tt.args, diff)
		}
	}
	_, out, _ := typed(t, "", "runs", "-data", data, "-since", "24h")
	if want := "3 runs: 1 completed, 1 policy, 1 failed, 0 other; 180.0 s in all; 0 of a newer version, 1 unparseable\n"; !strings.HasSuffix(out, want) {
		t.Errorf("runs ends in\n%s\nwant\n%s", out, want)
	}
}

// With -f runs goes on until it is told to stop, and prints what is new and
// matches, each attempt of a job, and nothing twice.
func TestRunsFollow(t *testing.T) {
	data := t.TempDir()
	now := time.Now()
	run := func(id string, at time.Duration, outcome record.Outcome) record.Run {
		return record.Run{JobID: id, StartedAt: now.Add(at), Outcome: outcome}
	}
	writeRuns(t, data, run("first", 0, record.Completed), run("second", time.Minute, record.Completed))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, out := io.Pipe()
	p := &program{stdout: out, stderr: io.Discard, getenv: func(string) string { return "" }}
	code := make(chan int, 1)
	go func() {
		code <- p.main(ctx, []string{"runs", "-f", "-n", "1", "-outcome", "completed", "-data", data})
		out.Close()
	}()
	lines := bufio.NewScanner(reader)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("runs -f ended, want a line with %q", want)
		}
		if !strings.Contains(lines.Text(), want) {
			t.Errorf("runs -f prints %q, want a line with %q", lines.Text(), want)
		}
	}
	next("STARTED")
	next("second") // -n leaves the first out, and it is not new afterwards
	next("2 runs: 2 completed")
	writeRuns(t, data, run("refused", 2*time.Minute, record.Policy), run("third", 3*time.Minute, record.Completed))
	next("third")
	writeRuns(t, data, run("first", 4*time.Minute, record.Completed))
	next("first")
	stop()
	if lines.Scan() {
		t.Errorf("runs -f goes on with %q", lines.Text())
	}
	if got := <-code; got != exitOK {
		t.Errorf("runs -f ended with %d, want %d", got, exitOK)
	}
}

func TestRunsFollowUntil(t *testing.T) {
	data := t.TempDir()
	writeRuns(t, data, record.Run{JobID: "a", StartedAt: time.Now(), Outcome: record.Completed})
	code, out, errs := typed(t, "", "runs", "-f", "-until", "1", "-data", data)
	if code != exitOK || !strings.Contains(out, "  a  ") {
		t.Errorf("runs -f -until 1 = %d, %q, %q, want the run that there was", code, out, errs)
	}
	code, out, errs = typed(t, "", "runs", "-f", "-json", "-data", data)
	if code != exitUsage || out != "" || !strings.Contains(errs, "-f and -json do not go together") {
		t.Errorf("runs -f -json = %d, %q, %q, want %d and why", code, out, errs, exitUsage)
	}
}
