package worker_test

import (
	"context"
	"fmt"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/worker"
)

// A stub stands for a container runtime: each of its runs completes.
type stub struct{}

func (stub) Facts(context.Context) (container.Facts, error) { return container.Facts{}, nil }
func (stub) Image(context.Context, string) (container.Image, error) {
	return container.Image{}, nil
}
func (stub) Run(context.Context, container.Spec, container.IO) (container.Result, error) {
	return container.Result{}, nil
}
func (stub) Stop(context.Context, string) error { return nil }
func (stub) List(context.Context, container.Labels) ([]container.State, error) {
	return nil, nil
}

// A worker with a queue in memory. With container.NewDocker as its Runtime and a
// record.Store as its Records it is a real one.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue := &worker.Memory{}
	if err := queue.Submit(ctx, worker.Job{ID: "job-1"}); err != nil {
		panic(err)
	}
	w, err := worker.New(worker.Config{
		Queue: queue, Runtime: stub{}, Host: "host-a", Slots: 1,
		Hooks: worker.Hooks{
			Prepare: func(context.Context, worker.Pickup) (worker.Preparation, error) {
				return worker.Preparation{Spec: container.Spec{Args: []string{"make", "test"}}}, nil
			},
			Observe: func(_ context.Context, e worker.Event) error {
				fmt.Println(e.Job, e.Kind)
				if e.Kind == worker.JobEnded {
					stop()
				}
				return nil
			},
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// job-1 picked
	// job-1 started
	// job-1 ended
	// <nil>
}

// The real exit code decides the class, whatever the line says; and the cost of a
// line that claims another code is not to be settled with.
func ExampleClassify() {
	said := exit.Parser{}.Parse([]byte(`{"event":"exit","code":2,"reason":"cost-cap"}` + "\n"))
	for _, code := range []int{2, 0, 1} {
		o := worker.Classify(container.Result{Code: code, Line: said})
		fmt.Println(code, o.Class, o.CostTrusted)
	}
	// Output:
	// 2 policy true
	// 0 completed false
	// 1 infra false
}
