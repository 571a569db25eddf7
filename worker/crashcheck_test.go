package worker_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker/spool"
)

// checkLeft checks that nothing of a dead worker is left.
func (c *crash) checkLeft() {
	for _, folder := range []string{"instances", "spool/ready", "spool/delayed", "spool/claims", "spool/instances", "spool/aside"} {
		if left := c.list(folder); len(left) > 0 {
			c.t.Errorf("%s holds %q, want nothing", folder, left)
		}
	}
	for _, name := range c.list("records") {
		if !strings.HasSuffix(name, ".json") {
			c.t.Errorf("records/%s is left", name)
		}
	}
	// What a killed worker ran is ended by its supervisor, which sees it gone.
	left := c.processes()
	for try := 0; try < 600 && len(left) > 0; try++ {
		time.Sleep(50 * time.Millisecond)
		left = c.processes()
	}
	if len(left) > 0 {
		c.t.Errorf("processes are left: %q", left)
	}
}

// processes returns the command lines of the processes that name the site.
func (c *crash) processes() (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(files) == 0 {
		c.t.Log("without /proc nobody looks for processes that are left")
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(c.Root+"/")) {
			all = append(all, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return all
}

// kindOf returns what is right for a job, by the number at the end of its id.
func (c *crash) kindOf(id string) crashKind {
	i, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	if err != nil {
		c.t.Errorf("job %q is none of the test's", id)
	}
	return crashKinds[i%len(crashKinds)]
}

// checkRecords checks that each job that was accepted has one record, the right
// one, and that just those that failed are dead.
func (c *crash) checkRecords() map[string]record.Record {
	records := map[string]record.Record{}
	for rec, err := range c.records().All() {
		if err != nil {
			c.t.Errorf("a record is not whole: %v", err)
			continue
		}
		if _, twice := records[rec.JobID]; twice {
			c.t.Errorf("job %s has two records", rec.JobID)
		}
		records[rec.JobID] = rec
	}
	for _, id := range c.lines(c.submitted()) {
		if _, ok := records[id]; !ok {
			c.t.Errorf("job %s was accepted and has no record", id)
		}
	}
	dead := c.dead()
	for id, rec := range records {
		kind := c.kindOf(id)
		if rec.Outcome != kind.outcome || *rec.Attempt != kind.attempt || dead[id] != kind.dead {
			c.t.Errorf("job %s that %s: outcome %q, attempt %d, dead %v; want %q, %d, %v",
				id, kind.name, rec.Outcome, *rec.Attempt, dead[id], kind.outcome, kind.attempt, kind.dead)
		}
	}
	c.totals.jobs += len(records)
	return records
}

// dead returns the ids of the dead jobs.
func (c *crash) dead() map[string]bool {
	queue, err := spool.Open(spool.Config{Dir: c.spool()})
	if err != nil {
		c.t.Fatal(err)
	}
	defer queue.Close()
	ids := map[string]bool{}
	for job, err := range queue.Dead(c.t.Context()) {
		if err != nil || ids[job.Job.ID] {
			c.t.Errorf("dead job %q, %v, want each once", job.Job.ID, err)
		}
		ids[job.Job.ID] = true
	}
	if known := len(c.list("spool/ids")); known != len(ids) {
		c.t.Errorf("%d ids are taken, want those of the %d dead jobs", known, len(ids))
	}
	return ids
}

func (c *crash) lines(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		c.t.Error(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// checkLedger checks that each attempt up to the record's ran, no other, and
// none of a job that had ended.
func (c *crash) checkLedger(records map[string]record.Record) {
	at := int64(0)
	ran := map[string]bool{}
	for _, line := range c.lines(c.ledger()) {
		id, _, _ := strings.Cut(line, " ")
		if end, over := c.over[digestOfID(id)]; over && at >= end {
			c.t.Errorf("a run of %q began after the job had ended", line)
		}
		c.totals.runs++
		if ran[line] {
			c.totals.repeats++
		}
		ran[line] = true
		at += int64(len(line)) + 1
	}
	want := 0
	for id, rec := range records {
		for attempt := int64(1); attempt <= *rec.Attempt; attempt++ {
			want++
			if !ran[fmt.Sprint(id, " ", attempt)] {
				c.t.Errorf("attempt %d of job %s never ran", attempt, id)
			}
		}
	}
	if len(ran) != want {
		c.t.Errorf("%d attempts ran, want %d", len(ran), want)
	}
}

// checkNotices checks that somebody was told of each job that ended without
// success, by one id, and of no other.
func (c *crash) checkNotices(records map[string]record.Record) {
	told := map[string]bool{}
	for _, id := range c.lines(c.notices()) {
		told[id] = true
		c.totals.notices++
	}
	for id, rec := range records {
		want := fmt.Sprint(id, ":", *rec.Attempt)
		if told[want] != (rec.Outcome != record.Completed) {
			c.t.Errorf("job %s ended %q: its notification came: %v", id, rec.Outcome, told[want])
		}
		delete(told, want)
	}
	if len(told) > 0 {
		c.t.Errorf("notifications %v, want none of them", told)
	}
}
