package redisrow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/livejobs/redisrow"
)

// A worker publishes what it runs until it is told to stop.
func ExamplePublisher() {
	server, err := redisrow.ClientOption("redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs := &livejobs.Registry{} // the worker enters its pickups here
	publisher, err := redisrow.New(redisrow.Config{
		Server: server, Host: "host-a", Version: "v1.4.0", Jobs: jobs,
		Slots: func() (slots, used int) { return 8, 0 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := publisher.Run(ctx); errors.Is(err, redisrow.ErrNameTaken) {
		fmt.Println("give this worker another name:", err)
	}
}

// A display reads what every host runs.
func ExampleFleet() {
	server, err := redisrow.ClientOption("redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := rueidis.NewClient(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fleet, err := redisrow.Fleet(context.Background(), client, redisrow.FleetConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, host := range fleet.Hosts {
		fmt.Printf("%s runs %d jobs in %d of %d slots, stale: %v\n", host.Name, len(host.Jobs), host.Used, host.Slots, host.Stale)
	}
}
