package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
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

// Whoever can't see the bars is told what they show.
func TestReportNamesItsPictures(t *testing.T) {
	var out bytes.Buffer
	if err := reportPage.Execute(&out, sampleReport()); err != nil {
		t.Fatal(err)
	}
	pictures := strings.Split(out.String(), "<svg ")[1:]
	for _, picture := range pictures {
		tag, _, _ := strings.Cut(picture, ">")
		if _, label, _ := strings.Cut(tag, `role="img" aria-label="`); !regexp.MustCompile(`^[^"]*[0-9][^"]*"`).MatchString(label) {
			t.Errorf("a picture has no label with a number: <svg %s>", tag)
		}
	}
	for _, want := range []string{`<html lang="en">`, "<title>Runs 2026-05-01 to 2026-05-08</title>", `<th scope="col">`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if len(pictures) == 0 || strings.Contains(out.String(), "<th>") {
		t.Errorf("the page has %d pictures, or a header that heads nothing", len(pictures))
	}
}

// The colours of both themes stand out from their background as WCAG 2 asks:
// 4.5 for text, 3 for what a picture shows.
func TestReportContrast(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(reportText, -1)
	if len(themes) != 2 {
		t.Fatalf("the page has %d themes, want light and dark", len(themes))
	}
	for i, theme := range themes {
		colors := map[string]string{}
		for _, match := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]+);`).FindAllStringSubmatch(theme[1], -1) {
			colors[match[1]] = match[2]
		}
		for name, least := range map[string]float64{"ink": 4.5, "dim": 4.5, "completed": 3, "policy": 3, "failed": 3, "wait": 3, "run": 3} {
			if got := contrast(t, colors[name], colors["bg"]); got < least {
				t.Errorf("theme %d: --%s on --bg has a contrast of %.2f, want %.1f", i, name, got, least)
			}
		}
	}
}

// contrast is the ratio of two colours by WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light, dark := luminance(t, a)+0.05, luminance(t, b)+0.05
	return max(light, dark) / min(light, dark)
}

func luminance(t *testing.T, color string) (sum float64) {
	t.Helper()
	if len(color) == 3 {
		color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
	}
	n, err := strconv.ParseUint(color, 16, 24)
	if err != nil {
		t.Fatalf("color %q: %v", color, err)
	}
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		c := float64(n>>(8*i)&0xff) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

// An outcome of a later build is counted as itself, never as a failure.
func TestReportOfAnotherOutcome(t *testing.T) {
	r, err := record.Parse([]byte(`{"jobId":"a","outcome":"postponed","startedAt":"2026-05-01T10:00:00.000Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	var totals runTotals
	totals.add(r)
	if diff := cmp.Diff(runTotals{Runs: 1, Other: 1}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	page := newReport(runList{Runs: []record.Record{r}, Totals: totals}, reportStart, reportStart.Add(24*time.Hour))
	if err := reportPage.Execute(&out, page); err != nil {
		t.Fatal(err)
	}
	if want := "failed 0, of another outcome 1."; !strings.Contains(out.String(), want) {
		t.Errorf("the page lacks %q", want)
	}
}
