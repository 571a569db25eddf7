package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

var reportStart = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// sampleRuns are runs of two hosts and two projects over a week.
func sampleRuns() []record.Record {
	slots := int64(2)
	outcomes := []struct {
		outcome record.Outcome
		reason  exit.Reason
	}{{record.Completed, ""}, {record.Completed, ""}, {record.Completed, ""}, {record.Policy, "oom-killed"},
		{record.Completed, ""}, {record.Failed, "container-infra-exit"}, {record.Completed, "awaiting-input"}}
	var runs []record.Record
	for i := range 120 {
		o := outcomes[i%len(outcomes)]
		start := reportStart.Add(time.Duration(i) * 80 * time.Minute)
		peak := int64(100+i) << 20
		code := int64(0)
		run := record.Run{
			JobID: fmt.Sprintf("job-%03d", i), Attempt: 1, Kind: "local", Folder: "/srv/app", Host: []string{"build-1", "build-2"}[i%2],
			Project: []string{"web", "api"}[i%2], StartedAt: start, EndedAt: start.Add(time.Duration(20+i%200) * time.Minute),
			Outcome: o.outcome, Reason: o.reason, ExitCode: &code,
			Size:     jobsize.Size{Mem: 512, CPU: 100, Source: jobsize.FromProject},
			Capacity: &record.Capacity{Slots: &slots},
			Job:      record.Job{Created: start.Add(-time.Duration(i%30) * time.Minute)},
			Line:     &exit.Line{Verified: true, Resources: &exit.Resources{MemPeak: &peak}},
		}
		runs = append(runs, record.Build(run))
	}
	return runs
}

func sampleReport() reportData {
	runs := sampleRuns()
	list := listRuns(func(yield func(record.Record, error) bool) {
		for _, r := range runs {
			if !yield(r, nil) {
				return
			}
		}
	}, runFilter{})
	return newReport(list, reportStart, reportStart.Add(7*24*time.Hour))
}

func TestReportNumbers(t *testing.T) {
	page := sampleReport()
	if page.Totals.Runs != 120 || page.Totals.Completed+page.Totals.Policy+page.Totals.Failed != 120 {
		t.Errorf("totals = %+v, want 120 runs", page.Totals)
	}
	// The peaks of web are 100, 102, ... 218 MiB: 57 of 60 do not exceed 212.
	want := projectMemory{Project: "web", Runs: 60, Size: 512, P95: 212, Peak: 218,
		P95Bar: 212.0 / 512, PeakBar: 218.0 / 512, SizeBar: 1, Suggested: new(jobsize.MiB(320))}
	if diff := cmp.Diff(want, page.Projects[1]); diff != "" {
		t.Errorf("project web differs (-want +got):\n%s", diff)
	}
	for _, host := range page.Hosts {
		for _, row := range host.Rows {
			for i := 1; i < len(row); i++ {
				if row[i].Left < row[i-1].Left+row[i-1].Width-1e-9 {
					t.Errorf("host %s: run %s overlaps %s in its row", host.Host, row[i].Job, row[i-1].Job)
				}
			}
		}
	}
	if len(page.Days) != 7 {
		t.Errorf("got %d days, want 7", len(page.Days))
	}
}

func TestReportSuggestsOnlyFromEnoughRuns(t *testing.T) {
	few := projects(sampleRuns()[:2*(fewestPeaks-1)])
	for _, p := range few {
		if p.Suggested != nil {
			t.Errorf("project %s: suggested %v from %d runs, want none", p.Project, p.Suggested, p.Runs)
		}
	}
	for _, tt := range []struct {
		peak int64
		want jobsize.MiB
	}{{1, 64}, {52, 128}, {51, 64}, {1024, 1280}, {1 << 20, jobsize.MaxMem}} {
		if got := suggestedSize(tt.peak); got != tt.want {
			t.Errorf("suggestedSize(%d) = %v, want %v", tt.peak, got, tt.want)
		}
	}
}

// TestReportPage holds that the page needs nothing from outside, runs nothing
// and takes no text of a record for markup. DISPATCH_REPORT_PAGE names a file to
// keep the page in, to look at it.
func TestReportPage(t *testing.T) {
	page := sampleReport()
	page.Hosts[0].Rows[0][0].Job = `<script>alert("x")</script>`
	var out bytes.Buffer
	if err := reportPage.Execute(&out, page); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "http:", "https:", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if name := os.Getenv("DISPATCH_REPORT_PAGE"); name != "" {
		if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var empty bytes.Buffer
	if err := reportPage.Execute(&empty, newReport(runList{}, reportStart, reportStart.Add(time.Hour))); err != nil {
		t.Errorf("the page of no runs: %v", err)
	}
}
