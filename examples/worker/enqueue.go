package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgehero/dispatch/worker"
)

var enqueueCommand = command{
	name:    "enqueue",
	args:    "JOBFILE",
	summary: "put a job into the queue",
	note:    jobFileNote,
	example: "  worker enqueue examples/jobs/count-in-container.json\n  worker enqueue -delay 10m job.json\n" +
		"  worker enqueue -redis 127.0.0.1:6379 job.json",
	run: enqueue,
}

var cancelCommand = command{
	name:    "cancel",
	args:    "JOB",
	summary: "stop a job wherever it is",
	example: "  worker cancel job-abcdefghij",
	run:     cancel,
}

// An enqueued is the JSON form of what enqueue prints.
type enqueued struct {
	ID string `json:"id"`
}

func enqueue(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var flags queueFlags
	flags.bind(f)
	delay := f.Duration("delay", 0, "how long the job waits before it is due")
	asJSON := f.Bool("json", false, "print JSON")
	args, err := p.parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	job, err := p.readJobFile(args[0])
	if err != nil {
		return err
	}
	job.Delay = *delay
	err = withQueue(ctx, flags, 0, func(ctx context.Context, producer worker.Producer) error {
		return producer.Submit(ctx, job)
	})
	if errors.Is(err, worker.ErrDuplicate) {
		return usagef("%w; wait for it, cancel it, or give this one another id", err)
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return p.printJSON(enqueued{job.ID})
	}
	fmt.Fprintln(p.stdout, job.ID)
	return nil
}

// A cancelled is the JSON form of what cancel prints.
type cancelled struct {
	ID     string              `json:"id"`
	Answer worker.CancelAnswer `json:"answer"` // removed, requested, stopped or too-late
}

// askAgain is how often a running job is asked for until its worker stopped it.
const askAgain = 200 * time.Millisecond

func cancel(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var flags queueFlags
	flags.bind(f)
	wait := f.Duration("wait", 30*time.Second, "how long to wait for a running job's worker")
	asJSON := f.Bool("json", false, "print JSON")
	args, err := p.parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	var answer worker.CancelAnswer
	err = withQueue(ctx, flags, *wait, func(ctx context.Context, producer worker.Producer) error {
		answer, err = awaitCancel(ctx, producer, args[0], *wait)
		return err
	})
	if errors.Is(err, worker.ErrUnknownJob) {
		return usagef("%w; worker runs lists the jobs that ran", err)
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return p.printJSON(cancelled{args[0], answer})
	}
	fmt.Fprintf(p.stdout, "job %s: %s\n", args[0], answer)
	return nil
}

// awaitCancel asks for a job's cancel until it is known what came of it, or the
// time is up.
func awaitCancel(ctx context.Context, producer worker.Producer, id string, wait time.Duration) (worker.CancelAnswer, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		answer, err := producer.Cancel(ctx, id)
		if err != nil || answer != worker.CancelRequested {
			return answer, err
		}
		select {
		case <-timeout.C:
			return answer, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
