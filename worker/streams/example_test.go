package streams_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/streams"
)

// A control plane submits a job to a server that many workers read. Each worker
// has a Queue with its own Host as the Queue, and the Mirror, of its Config.
func Example() {
	option, err := streams.ClientOption("redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	queue, err := streams.New(streams.Config{Client: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := queue.Submit(ctx, worker.Job{ID: "job-1", Data: []byte(`{"command":["true"]}`)}); err != nil {
		fmt.Println(err)
		return
	}
	status, err := queue.Status(ctx, "job-1")
	fmt.Println(status.State, err)
}

// An address that can't be one is refused without showing its password.
func ExampleClientOption() {
	_, err := streams.ClientOption("redis://me:secret@host:port")
	fmt.Println(err)
	// Output: read the address of a Redis server: want redis://user:password@host:port/number
}
