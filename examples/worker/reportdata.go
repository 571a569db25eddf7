package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// suggestedMargin is what a suggested size has over the 95th percentile of the
// peaks, as a share of it.
const suggestedMargin = 0.25

// fewestPeaks is how many runs a suggestion needs behind it.
const fewestPeaks = 5

// narrowest is the least width of a run's bar, in shares of the page's time.
const narrowest = 0.002

// A reportData is what the page shows, and what report prints as JSON: without
// the places of its bars.
type reportData struct {
	From     time.Time       `json:"from"`
	To       time.Time       `json:"to"`
	Totals   runTotals       `json:"totals"`
	Outcomes []outcomeCount  `json:"outcomes"`
	Hosts    []hostTimeline  `json:"hosts"`
	Days     []dayTimes      `json:"days"`
	Projects []projectMemory `json:"projects"`
	Margin   int             `json:"margin"` // of a suggestion, in percent
	Fewest   int             `json:"fewest"` // runs behind a suggestion
}

// An outcomeCount is how often runs ended one way.
type outcomeCount struct {
	Outcome record.Outcome `json:"outcome"`
	Reason  exit.Reason    `json:"reason"`
	Meaning string         `json:"meaning"` // of the reason, "" for one of an embedder's own
	Count   int            `json:"count"`
	Share   float64        `json:"share"` // of all runs
}

// A hostTimeline is a host's slots over time: each row a slot, each bar a run.
type hostTimeline struct {
	Host string          `json:"host"`
	Rows [][]timelineBar `json:"rows"`
}

// A timelineBar is one run; its place is in shares of the page's time.
type timelineBar struct {
	Job     string         `json:"job"`
	Outcome record.Outcome `json:"outcome"`
	Start   record.Instant `json:"startedAt"`
	Took    seconds        `json:"seconds"`
	Left    float64        `json:"-"`
	Width   float64        `json:"-"`
}

// A dayTimes is how long the runs of one day waited and ran, summed.
type dayTimes struct {
	Day       string  `json:"day"`
	Runs      int     `json:"runs"`
	Waited    seconds `json:"waited"`
	Ran       seconds `json:"ran"`
	WaitedBar float64 `json:"-"` // in shares of the longest day
	RanBar    float64 `json:"-"`
}

// A projectMemory is the memory peaks of a project against the sizes it ran at.
type projectMemory struct {
	Project   string       `json:"project"`
	Runs      int          `json:"runs"`         // with a peak
	Size      int64        `json:"sizeMiB"`      // the largest
	P95       int64        `json:"p95MiB"`       // of the peaks
	Peak      int64        `json:"peakMiB"`      // the highest
	Suggested *jobsize.MiB `json:"suggestedMiB"` // nil with too few runs
	P95Bar    float64      `json:"-"`            // in shares of the largest size
	PeakBar   float64      `json:"-"`
	SizeBar   float64      `json:"-"`
}

// seconds is a duration that JSON has in seconds.
type seconds time.Duration

// MarshalJSON implements [json.Marshaler].
func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

func newReport(list runList, from, to time.Time) reportData {
	return reportData{
		From: from, To: to, Totals: list.Totals, Margin: int(100 * suggestedMargin), Fewest: fewestPeaks,
		Outcomes: countOutcomes(list.Runs),
		Hosts:    timelines(list.Runs, from, to),
		Days:     days(list.Runs),
		Projects: projects(list.Runs),
	}
}

func countOutcomes(runs []record.Record) []outcomeCount {
	type key struct {
		outcome record.Outcome
		reason  exit.Reason
	}
	counts := map[key]int{}
	for _, r := range runs {
		counts[key{r.Outcome, r.Reason}]++
	}
	list := []outcomeCount{}
	for k, n := range counts {
		meaning, _ := record.Meaning(k.reason)
		list = append(list, outcomeCount{k.outcome, k.reason, meaning, n, float64(n) / float64(len(runs))})
	}
	slices.SortFunc(list, func(a, b outcomeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// An interval is a run with both its instants.
type interval struct {
	record.Record
	start, end time.Time
}

// intervals returns the runs that have both their instants, the earliest first.
func intervals(runs []record.Record) []interval {
	var list []interval
	for _, r := range runs {
		start, ok := r.StartedAt.Time()
		end, endOK := r.EndedAt.Time()
		if ok && endOK && !end.Before(start) {
			list = append(list, interval{r, start, end})
		}
	}
	slices.SortFunc(list, func(a, b interval) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.JobID, b.JobID))
	})
	return list
}

// timelines puts each host's runs into as few rows as do not overlap. Only runs
// that took a slot are shown.
func timelines(runs []record.Record, from, to time.Time) []hostTimeline {
	span := to.Sub(from).Seconds()
	byHost := map[string]*hostTimeline{}
	free := map[string][]time.Time{} // when each row of a host is free
	for _, r := range intervals(runs) {
		if r.Capacity == nil {
			continue
		}
		host := cmp.Or(string(r.Host), "unknown")
		line := byHost[host]
		if line == nil {
			line = &hostTimeline{Host: host}
			byHost[host] = line
		}
		row := slices.IndexFunc(free[host], func(t time.Time) bool { return !t.After(r.start) })
		if row < 0 {
			row = len(line.Rows)
			line.Rows, free[host] = append(line.Rows, nil), append(free[host], time.Time{})
		}
		free[host][row] = r.end
		left := min(max(0, r.start.Sub(from).Seconds()/span), 1-narrowest)
		line.Rows[row] = append(line.Rows[row], timelineBar{
			Job: r.JobID, Outcome: r.Outcome, Start: record.At(r.start), Took: seconds(r.end.Sub(r.start)), Left: left,
			Width: max(narrowest, min(1-left, r.end.Sub(r.start).Seconds()/span)),
		})
	}
	list := []hostTimeline{}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		list = append(list, *byHost[host])
	}
	return list
}

func days(runs []record.Record) []dayTimes {
	byDay := map[string]*dayTimes{}
	for _, r := range intervals(runs) {
		day := r.start.UTC().Format(time.DateOnly)
		if byDay[day] == nil {
			byDay[day] = &dayTimes{Day: day}
		}
		d := byDay[day]
		d.Runs++
		d.Ran += seconds(r.end.Sub(r.start))
		if queued, ok := r.QueuedAt.Time(); ok && queued.Before(r.start) {
			d.Waited += seconds(r.start.Sub(queued))
		}
	}
	list := []dayTimes{}
	longest := seconds(1)
	for _, day := range slices.Sorted(maps.Keys(byDay)) {
		d := *byDay[day]
		longest = max(longest, d.Waited+d.Ran)
		list = append(list, d)
	}
	for i := range list {
		list[i].WaitedBar = float64(list[i].Waited) / float64(longest)
		list[i].RanBar = float64(list[i].Ran) / float64(longest)
	}
	return list
}

// projects compares memory peaks with sizes. Under this worker every line is
// signed, so that a peak in a record was measured, not claimed.
func projects(runs []record.Record) []projectMemory {
	peaks := map[string][]int64{}
	sizes := map[string]int64{}
	for _, r := range runs {
		if r.Resources == nil || r.Resources.MemPeak == nil || r.Size == nil {
			continue
		}
		project := cmp.Or(string(r.Project), "none")
		peaks[project] = append(peaks[project], (*r.Resources.MemPeak+1<<20-1)>>20)
		sizes[project] = max(sizes[project], r.Size.MemMiB)
	}
	list := []projectMemory{}
	for _, project := range slices.Sorted(maps.Keys(peaks)) {
		p := slices.Sorted(slices.Values(peaks[project]))
		m := projectMemory{Project: project, Runs: len(p), Size: sizes[project], P95: percentile95(p), Peak: p[len(p)-1]}
		if len(p) >= fewestPeaks {
			size := suggestedSize(m.P95)
			m.Suggested = &size
		}
		scale := float64(max(m.Size, m.Peak))
		m.P95Bar, m.PeakBar, m.SizeBar = float64(m.P95)/scale, float64(m.Peak)/scale, float64(m.Size)/scale
		list = append(list, m)
	}
	return list
}

// percentile95 returns the smallest of sorted numbers that at least 95 % of them
// do not exceed.
func percentile95(sorted []int64) int64 {
	return sorted[(len(sorted)*95+99)/100-1]
}

// suggestedSize is the margin over a peak in MiB, rounded up to a whole 64 MiB.
func suggestedSize(peak int64) jobsize.MiB {
	with := int64(math.Ceil(float64(peak) * (1 + suggestedMargin)))
	const step = int64(jobsize.MinMem)
	return min(jobsize.MiB((with+step-1)/step*step), jobsize.MaxMem)
}
