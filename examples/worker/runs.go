package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edgehero/dispatch/record"
)

var runsCommand = command{
	name:    "runs",
	summary: "list the records, the newest first",
	example: "  worker runs -outcome failed -since 24h\n  worker runs -json",
	run:     runs,
}

// A runList is the JSON form of what runs prints.
type runList struct {
	Runs   []record.Record `json:"runs"`
	Totals runTotals       `json:"totals"`
}

// runTotals sum up what is listed; what could not be read is counted, never
// guessed at.
type runTotals struct {
	Runs        int     `json:"runs"`
	Completed   int     `json:"completed"`
	Policy      int     `json:"policy"`
	Failed      int     `json:"failed"`
	Other       int     `json:"other"`   // of an outcome that this build does not know
	Seconds     float64 `json:"seconds"` // from start to end, summed
	Unreadable  int     `json:"unreadable"`
	Unparseable int     `json:"unparseable"`
}

// A runFilter says which records are listed.
type runFilter struct {
	outcome, project, host string
	since                  time.Time
}

func (f runFilter) matches(r record.Record) bool {
	started, ok := r.StartedAt.Time()
	return (f.outcome == "" || f.outcome == string(r.Outcome)) &&
		(f.project == "" || f.project == string(r.Project)) &&
		(f.host == "" || f.host == string(r.Host)) &&
		(f.since.IsZero() || ok && !started.Before(f.since))
}

func runs(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var data string
	bindData(f, &data)
	var filter runFilter
	f.StringVar(&filter.outcome, "outcome", "", "only completed, policy or failed")
	f.StringVar(&filter.project, "project", "", "only this project's")
	f.StringVar(&filter.host, "on", "", "only of this host")
	since := f.Duration("since", 0, "only those that started at most this long ago")
	limit := f.Int("n", 0, "at most this many (default all)")
	follow := f.Bool("f", false, "go on, and print new ones as they come")
	until := f.Int("until", 0, "with -f, end once this `many` have been printed (default never)")
	asJSON := f.Bool("json", false, "print JSON")
	if _, err := p.parse(f, args, 0, 0); err != nil {
		return err
	}
	switch filter.outcome {
	case "", string(record.Completed), string(record.Policy), string(record.Failed):
	default:
		return usagef("flag -outcome is %.64q, want completed, policy or failed", filter.outcome)
	}
	if *follow && *asJSON {
		return usagef("flags -f and -json do not go together: JSON is one document")
	}
	if *since > 0 {
		filter.since = time.Now().Add(-*since)
	}
	if err := checkData(data); err != nil && !*follow { // what is followed may still come
		return err
	}
	store := &record.Store{Dir: logsFolder(data)}
	list := listRuns(store.All(), filter)
	all := list.Runs
	if *limit > 0 && len(all) > *limit {
		list.Runs = all[:*limit]
	}
	if *asJSON {
		return p.printJSON(list)
	}
	if err := p.printRuns(list); err != nil || !*follow {
		return err
	}
	left := *until - len(list.Runs)
	if *until > 0 && left <= 0 {
		return nil
	}
	return p.followRuns(ctx, store, filter, all, left)
}

// checkData refuses a data folder that is not there: a mistyped one would look
// like one without runs.
func checkData(data string) error {
	if _, err := os.Stat(data); err != nil {
		return unavailablef("data folder: %w; -data names it, and the first job makes it", err)
	}
	return nil
}

// listRuns returns the records that match, the newest first.
func listRuns(all iter.Seq2[record.Record, error], filter runFilter) runList {
	list := runList{Runs: []record.Record{}}
	for r, err := range all {
		if err != nil {
			list.Totals.Unparseable++
			continue
		}
		if !filter.matches(r) {
			continue
		}
		list.Runs = append(list.Runs, r)
		list.Totals.add(r)
	}
	slices.SortFunc(list.Runs, func(a, b record.Record) int {
		at, _ := a.StartedAt.Time()
		bt, _ := b.StartedAt.Time()
		return cmp.Or(bt.Compare(at), cmp.Compare(a.JobID, b.JobID))
	})
	return list
}

func (t *runTotals) add(r record.Record) {
	t.Runs++
	switch r.Outcome {
	case record.Completed:
		t.Completed++
	case record.Policy:
		t.Policy++
	case record.Failed:
		t.Failed++
	default:
		t.Other++
	}
	if took, ok := duration(r); ok {
		t.Seconds += took.Seconds()
	}
	if !r.Readable() {
		t.Unreadable++
	}
}

const runsHeader = "STARTED\tJOB\tATTEMPT\tOUTCOME\tREASON\tTOOK\tSIZE\tPROJECT\n"

func (p *program) printRuns(list runList) error {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, runsHeader)
	for _, r := range list.Runs {
		fmt.Fprint(t, runRow(r))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	n := list.Totals
	_, err := fmt.Fprintf(p.stdout, "%d runs: %d completed, %d policy, %d failed, %d other; %.1f s in all; %d of a newer version, %d unparseable\n",
		n.Runs, n.Completed, n.Policy, n.Failed, n.Other, n.Seconds, n.Unreadable, n.Unparseable)
	return err
}

func runRow(r record.Record) string {
	took, size, attempt := "-", "-", "-"
	if d, ok := duration(r); ok {
		took = d.Round(time.Millisecond).String()
	}
	if r.Size != nil {
		size = fmt.Sprintf("%dm/%d.%02d", r.Size.MemMiB, r.Size.CPUCenti/100, r.Size.CPUCenti%100)
	}
	if r.Attempt != nil {
		attempt = fmt.Sprint(*r.Attempt)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(string(r.StartedAt)), printable([]byte(r.JobID)), attempt,
		orDash(string(r.Outcome)), orDash(string(r.Reason)), took, size, orDash(string(r.Project)))
}

// followEvery is how often runs -f looks for new records.
const followEvery = time.Second

// followRuns prints records that were not there before, in the order they are
// found, until ctx ends or, where left is above 0, that many have been printed.
func (p *program) followRuns(ctx context.Context, store *record.Store, filter runFilter, seen []record.Record, left int) error {
	type run struct {
		job     string
		endedAt record.Instant
	}
	known := map[run]bool{}
	for _, r := range seen {
		known[run{r.JobID, r.EndedAt}] = true
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
		list := listRuns(store.All(), filter)
		slices.Reverse(list.Runs) // the oldest first, as they would have come
		for _, r := range list.Runs {
			key := run{r.JobID, r.EndedAt}
			if known[key] {
				continue
			}
			known[key] = true
			if _, err := fmt.Fprint(p.stdout, strings.ReplaceAll(runRow(r), "\t", "  ")); err != nil {
				return err
			}
			if left--; left == 0 {
				return nil
			}
		}
	}
}
