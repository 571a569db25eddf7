package streams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/worker"
	"github.com/redis/rueidis"
)

var _ worker.Producer = (*Queue)(nil)

// Submit adds a job. It returns worker.ErrDuplicate while the id is known, unless
// the job waits and the server has lost its place: then it gets one again.
func (q *Queue) Submit(ctx context.Context, job worker.Job) error {
	if err := job.Check(); err != nil {
		return fmt.Errorf("submit a job: %w", err)
	}
	if job.Created.IsZero() {
		job.Created = time.Now()
	}
	body, data, err := writeJob(job)
	if err != nil {
		return fmt.Errorf("submit a job: %w", err)
	}
	answer, err := q.run(ctx, q.scripts.submit,
		[]string{q.keys.job(job.ID), q.keys.ended(job.ID), q.keys.ready(), q.keys.delayed()},
		[]string{job.ID, body, data, millis(job.Delay), job.Host, q.keys.hosts(), rand.Text()})
	if err != nil {
		return fmt.Errorf("submit a job: %w", err)
	}
	if answer == "duplicate" {
		return fmt.Errorf("submit a job: %.64q: %w", job.ID, worker.ErrDuplicate)
	}
	return nil
}

// Cancel asks for a job to be stopped wherever it is.
func (q *Queue) Cancel(ctx context.Context, id string) (worker.CancelAnswer, error) {
	answer, err := q.run(ctx, q.scripts.cancel,
		[]string{q.keys.job(id), q.keys.ended(id), q.keys.delayed(), q.keys.ready()},
		[]string{id, group, q.keys.hosts(), millis(q.config.History)})
	if err != nil {
		return "", fmt.Errorf("cancel a job: %w", err)
	}
	if answer == "unknown" {
		return "", fmt.Errorf("cancel a job: %.64q: %w", id, worker.ErrUnknownJob)
	}
	return worker.CancelAnswer(answer), nil
}

// Requeue makes a dead job due again with no attempts counted.
func (q *Queue) Requeue(ctx context.Context, id string) error {
	answer, err := q.run(ctx, q.scripts.requeue,
		[]string{q.keys.job(id), q.keys.ready(), q.keys.dead()}, []string{id, q.keys.hosts(), rand.Text()})
	if err != nil {
		return fmt.Errorf("requeue a job: %w", err)
	}
	if answer == "unknown" {
		return fmt.Errorf("requeue a job: no dead job %.64q: %w", id, worker.ErrUnknownJob)
	}
	return nil
}

// Status says where a job stands. A settled job is known for the time that
// Config.History gives.
func (q *Queue) Status(ctx context.Context, id string) (worker.Status, error) {
	job, err := q.hash(ctx, q.keys.job(id))
	if err != nil {
		return worker.Status{}, fmt.Errorf("read a job's status: %w", err)
	}
	if job["body"] != "" {
		return jobStatus(id, job)
	}
	return q.endedStatus(ctx, id)
}

// endedStatus reads the status of a job from how it ended.
func (q *Queue) endedStatus(ctx context.Context, id string) (worker.Status, error) {
	answer, err := q.ask(ctx, func(ctx context.Context, _ bool) rueidis.RedisResult {
		return q.config.Client.Do(ctx, q.config.Client.B().Get().Key(q.keys.ended(id)).Build())
	})
	if rueidis.IsRedisNil(err) {
		return worker.Status{}, fmt.Errorf("read a job's status: %.64q: %w", id, worker.ErrUnknownJob)
	}
	if err != nil {
		return worker.Status{}, fmt.Errorf("read a job's status: %w", err)
	}
	text, err := answer.ToString()
	if err != nil {
		return worker.Status{}, fmt.Errorf("read a job's status: %w", err)
	}
	status := worker.Status{State: worker.Settled, Job: worker.Job{ID: id}}
	var settled string
	if _, err := fmt.Sscanf(text, "%s %s %d %d", &status.Cancel, &settled, &status.Attempts, &status.Stalls); err != nil {
		return worker.Status{}, fmt.Errorf("read a job's status: how job %.64q ended is %.64q, want an answer, what settled it and two counts", id, text)
	}
	if status.Cancel == "-" {
		status.Cancel = ""
	}
	return status, nil
}

func jobStatus(id string, row map[string]string) (worker.Status, error) {
	if !slices.Contains([]worker.State{worker.Waiting, worker.Delayed, worker.Running, worker.Dead}, worker.State(row["state"])) {
		return worker.Status{}, fmt.Errorf("read a job's status: the stored job %.64q: its state is %.64q", id, row["state"])
	}
	status := worker.Status{
		State:    worker.State(row["state"]),
		Host:     row["host"],
		Reason:   exit.Reason(row["reason"]),
		Cancel:   worker.CancelAnswer(row["cancel"]),
		Attempts: number(row, "attempts"),
		Stalls:   number(row, "stalls"),
	}
	if due := number(row, "due"); due > 0 {
		status.Due = time.UnixMilli(int64(due))
	}
	var err error
	if status.Job, err = readJob(id, row["body"], row["data"]); err != nil {
		return worker.Status{}, fmt.Errorf("read a job's status: %w", err)
	}
	status.Job.Attempts, status.Job.Stalls = status.Attempts, status.Stalls
	return status, nil
}

// deadPage is how many dead jobs one round trip reads.
const deadPage = 100

// Dead lists the dead jobs, oldest first. A job that can't be read is an error
// that does not end the list.
func (q *Queue) Dead(ctx context.Context) iter.Seq2[worker.DeadJob, error] {
	return func(yield func(worker.DeadJob, error) bool) {
		for from := "-"; ; {
			ids, last, err := q.deadIDs(ctx, from)
			if err != nil {
				yield(worker.DeadJob{}, fmt.Errorf("list the dead jobs: %w", err))
				return
			}
			for _, id := range ids {
				job, err := q.deadJob(ctx, id)
				if errors.Is(err, worker.ErrUnknownJob) {
					continue // requeued meanwhile
				}
				if !yield(job, err) {
					return
				}
			}
			if len(ids) < deadPage {
				return
			}
			from = "(" + last
		}
	}
}

func (q *Queue) deadIDs(ctx context.Context, from string) (ids []string, last string, err error) {
	answer, err := q.ask(ctx, func(ctx context.Context, _ bool) rueidis.RedisResult {
		return q.config.Client.Do(ctx,
			q.config.Client.B().Xrange().Key(q.keys.dead()).Start(from).End("+").Count(deadPage).Build())
	})
	if err != nil {
		return nil, "", err
	}
	entries, err := answer.AsXRange()
	for _, e := range entries {
		ids, last = append(ids, e.FieldValues["id"]), e.ID
	}
	return ids, last, err
}

func (q *Queue) deadJob(ctx context.Context, id string) (worker.DeadJob, error) {
	row, err := q.hash(ctx, q.keys.job(id))
	if err != nil {
		return worker.DeadJob{}, fmt.Errorf("list the dead jobs: %w", err)
	}
	if row["state"] != string(worker.Dead) {
		return worker.DeadJob{}, worker.ErrUnknownJob
	}
	status, err := jobStatus(id, row)
	if err != nil {
		return worker.DeadJob{}, err
	}
	return worker.DeadJob{Job: status.Job, Reason: status.Reason, At: time.UnixMilli(int64(number(row, "at")))}, nil
}

// number reads a field that a script counts; 0 when it is missing.
func number(row map[string]string, field string) int {
	n, _ := strconv.Atoi(row[field])
	return n
}
