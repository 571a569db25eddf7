package streams

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/worker"
)

// BenchmarkQueue works a backlog off, each slot settling a job with the claim of
// its next.
func BenchmarkQueue(b *testing.B) {
	for _, slots := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("slots=", slots), func(b *testing.B) {
			addr := lab.RedisAddr(b)
			config := Config{Client: openClient(b, addr), Host: "host-a", History: time.Second}
			config.Prefix = testPrefix(b, config.Client)
			q := open(b, config)
			config.Client = openClient(b, addr)
			producer := open(b, config)
			for i := range b.N {
				if err := producer.Submit(b.Context(), worker.Job{ID: fmt.Sprint("job-", i)}); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var all sync.WaitGroup
			left := make(chan struct{}, b.N)
			for range slots {
				all.Go(func() {
					d, err := q.Next(ctx)
					for err == nil && d != nil {
						if d, err = d.(worker.DoneNexter).DoneNext(b.Context(), nil); err != nil {
							b.Error(err)
						}
						if left <- struct{}{}; len(left) == b.N {
							stop()
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
