package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

var runCommand = command{
	name:    "run",
	args:    "JOBFILE",
	summary: "run one job in the foreground; the exit code is the job's outcome",
	note:    jobFileNote,
	example: "  worker run examples/jobs/count.json\n  echo '{\"command\":[\"date\"]}' | worker run -",
	run:     run,
}

func run(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var flags hostFlags
	flags.bind(f)
	attempts := f.Int("attempts", 1, "how often a failed job is tried in all")
	asJSON := f.Bool("json", false, "print the record as JSON, and nothing else")
	args, err := p.parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	job, err := p.readJobFile(args[0])
	if err != nil {
		return err
	}
	var d *display
	if !*asJSON {
		d = p.openDisplay()
	}
	h, err := p.openHost(flags)
	if err != nil {
		return err
	}
	rec, err := p.runOne(ctx, h, d, job, *attempts, *asJSON)
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	if *asJSON {
		if err := p.printJSON(rec); err != nil {
			return err
		}
	} else if err := p.printRun(h, rec); err != nil {
		return err
	}
	return runOutcome(rec)
}

// errNoAnswer is the end of a job that a worker would keep for later.
var errNoAnswer = errors.New("a part that it needs does not answer; the log says which")

// runOne runs a job through a worker of its own and returns its record.
func (p *program) runOne(ctx context.Context, h *host, d *display, job worker.Job, attempts int, quiet bool) (record.Record, error) {
	file, err := jobFileOf(job)
	if err != nil {
		return record.Record{}, usagef("%w", err)
	}
	if err := p.checkVenue(ctx, h, file.Image); err != nil {
		return record.Record{}, err
	}
	h.sweep(ctx)

	queue := &worker.Memory{}
	if err := queue.Submit(ctx, job); err != nil {
		return record.Record{}, usagef("%w", err)
	}
	live := &livejobs.Registry{}
	defer d.start(ctx, live, h.running)()
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	hooks := worker.Hooks{
		Describe: h.describe(true),
		Prepare:  h.prepare,
		Observe: func(_ context.Context, e worker.Event) error {
			if !quiet {
				p.printEvent(e)
			}
			switch e.Kind {
			case worker.JobEnded, worker.JobDead:
				ended(nil)
			case worker.JobHandedBack:
				ended(errNoAnswer)
			}
			return nil
		},
	}
	if !quiet {
		var mu sync.Mutex
		hooks.Output = func(_ context.Context, at worker.Pickup, line []byte) error {
			d.output(at.Job.ID, line)
			mu.Lock()
			defer mu.Unlock()
			_, err := fmt.Fprintf(p.stdout, "  | %s\n", printable(line))
			return err
		}
	}
	w, err := worker.New(worker.Config{
		Queue: queue, Runtime: h.venues, Records: h.records, Live: live, Hooks: hooks, Host: h.name,
		Instance: h.instance.ID(), Slots: 1, Attempts: attempts, OpenLog: h.openLog, Log: h.log,
		DefaultSize: h.defaultSize(ctx, jobsize.Budget{}),
	})
	if err != nil {
		return record.Record{}, usagef("%w", err)
	}
	if err := w.Run(ctx); err != nil {
		return record.Record{}, err
	}
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		return record.Record{}, unavailablef("job %s: %w", job.ID, errNoAnswer)
	}
	rec, err := h.records.Read(job.ID)
	if err != nil {
		return record.Record{}, fmt.Errorf("the job was stopped before it came to a record: %w", err)
	}
	return rec, nil
}

// checkVenue says before anything starts what a job can't do without.
func (p *program) checkVenue(ctx context.Context, h *host, image string) error {
	if image == "" {
		return nil
	}
	if len(h.venues.open) == 0 {
		return usagef("the job names the image %.200q, and -runtime none runs no image", image)
	}
	if _, err := h.venues.container(ctx); err != nil {
		return unavailablef("%w; start Docker or Podman, or leave \"image\" out of the job file to run it without a container", err)
	}
	return nil
}

func (p *program) printEvent(e worker.Event) {
	switch e.Kind {
	case worker.JobStarted:
		fmt.Fprintf(p.stdout, "job %s: started, attempt %d\n", e.Job, e.Attempt)
	case worker.JobRetried:
		fmt.Fprintf(p.stdout, "job %s: attempt %d failed (%s), the next one is due in %s\n",
			e.Job, e.Attempt, e.Outcome.Reason, time.Until(e.Due).Round(time.Second))
	case worker.JobOrphan:
		fmt.Fprintf(p.stdout, "job %s: its container may still run\n", e.Job)
	}
}

// printRun says what became of a job, and where to look further.
func (p *program) printRun(h *host, rec record.Record) error {
	how := string(rec.Outcome)
	if rec.Reason != "" {
		how += ", " + string(rec.Reason)
		if meaning, ok := record.Meaning(rec.Reason); ok {
			how += ": " + meaning
		}
	}
	fmt.Fprintf(p.stdout, "job %s: %s\n", rec.JobID, how)
	if rec.Reason == "job-image-missing" {
		fmt.Fprintln(p.stdout, "  images are never pulled: pull or import it first, or name another one")
	}
	if rec.ExitCode != nil {
		fmt.Fprintf(p.stdout, "  exit code  %d\n", *rec.ExitCode)
	}
	if took, ok := duration(rec); ok {
		fmt.Fprintf(p.stdout, "  took       %s\n", took)
	}
	if rec.Resources != nil && rec.Resources.MemPeak != nil {
		fmt.Fprintf(p.stdout, "  memory     %s at most\n", bytesText(*rec.Resources.MemPeak))
	}
	name, err := record.FileName(rec.JobID)
	if err != nil {
		return err
	}
	base := filepath.Join(logsFolder(h.flags.data), name)
	fmt.Fprintf(p.stdout, "  record     %s.json\n  log        %s.log\n", base, base)
	return nil
}

// runOutcome is the exit code of a job's outcome.
func runOutcome(rec record.Record) error {
	switch rec.Outcome {
	case record.Completed:
		return nil
	case record.Policy:
		return &failure{exitPolicy, fmt.Errorf("job %s ended as policy, %s", rec.JobID, orDash(string(rec.Reason)))}
	}
	return &failure{exitFailed, fmt.Errorf("job %s failed, %s", rec.JobID, orDash(string(rec.Reason)))}
}
