package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

func runAsynq(ctx context.Context, l load) (result, error) {
	redis := asynq.RedisClientOpt{Addr: l.addr}
	client := asynq.NewClient(redis)
	defer client.Close()
	enqueue := func(id string) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", []byte(id)), asynq.Queue(l.prefix), asynq.TaskID(id), asynq.MaxRetry(3))
		return err
	}
	if err := submitAll(l.backlog, func(i int) error { return enqueue(fmt.Sprint("backlog-", i)) }); err != nil {
		return result{}, err
	}
	var r result
	start := time.Now()
	stop, err := asynqServer(redis, l, l.backlog, func(string) {})
	if err != nil {
		return result{}, err
	}
	stop()
	r.JobsPerSecond = float64(l.backlog) / time.Since(start).Seconds()

	t := newTimes()
	all := sync.WaitGroup{}
	var worked error
	all.Go(func() {
		var stop func()
		if stop, worked = asynqServer(redis, l, l.paced, t.started); worked == nil {
			stop()
		}
	})
	if err := t.submit(l, enqueue); err != nil {
		return result{}, err
	}
	all.Wait()
	r.P99 = p99(t.latencies)
	return r, worked
}

// asynqServer works until so many jobs have run.
func asynqServer(redis asynq.RedisClientOpt, l load, jobs int, run func(id string)) (stop func(), err error) {
	var all sync.WaitGroup
	all.Add(jobs)
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: l.slots, Queues: map[string]int{l.prefix: 1}, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 200 * time.Millisecond, // its shortest wait for a job
	})
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		run(string(task.Payload()))
		all.Done()
		return nil
	}))
	if err != nil {
		return nil, err
	}
	all.Wait()
	return func() { go server.Shutdown() }, nil
}
