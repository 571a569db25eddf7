package spool_test

import (
	"context"
	"fmt"
	"os"

	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/spool"
)

// A queue in a folder: submit, claim, settle. A worker does the last two.
func Example() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	queue, err := spool.Open(spool.Config{Dir: dir, Host: "host-a"})
	if err != nil {
		panic(err)
	}
	defer queue.Close()

	ctx := context.Background()
	job := worker.Job{ID: "job-1", Data: []byte(`{"command":["true"]}`)}
	fmt.Println(queue.Submit(ctx, job))
	fmt.Println(queue.Submit(ctx, job))

	delivery, err := queue.Next(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(delivery.Job().ID, string(delivery.Job().Data))
	fmt.Println(delivery.Done(ctx, nil))
	status, err := queue.Status(ctx, "job-1")
	fmt.Println(status.State, err)
	// Output:
	// <nil>
	// submit job "job-1": a job of that id is already known
	// job-1 {"command":["true"]}
	// <nil>
	// settled <nil>
}
