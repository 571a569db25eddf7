package spool

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edgehero/dispatch/worker"
)

var syncing = map[string]bool{"synced": false, "unsynced": true}

func BenchmarkSubmit(b *testing.B) {
	for how, unsynced := range syncing {
		b.Run(how, func(b *testing.B) {
			s := openTest(b, b.TempDir(), "")
			s.unsynced = unsynced
			for i := 0; b.Loop(); i++ {
				submitTo(b, s, worker.Job{ID: fmt.Sprint(i)})
			}
		})
	}
}

// BenchmarkJobs claims and settles jobs that wait, with so many claimers.
func BenchmarkJobs(b *testing.B) {
	for _, claimers := range []int{1, 4, 16} {
		for how, unsynced := range syncing {
			b.Run(fmt.Sprintf("claimers=%d/%s", claimers, how), func(b *testing.B) {
				s := openTest(b, b.TempDir(), "")
				s.unsynced = true
				for i := range b.N {
					submitTo(b, s, worker.Job{ID: fmt.Sprint(i)})
				}
				s.unsynced = unsynced
				b.ResetTimer()
				work(b, s, claimers)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

func work(b *testing.B, s *Spool, claimers int) {
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var done atomic.Int64
	var all sync.WaitGroup
	for range claimers {
		all.Go(func() {
			for {
				d, err := s.Next(ctx)
				if err != nil {
					return
				}
				if err := d.Done(b.Context(), nil); err != nil {
					b.Error(err)
				}
				if done.Add(1) == int64(b.N) {
					stop()
				}
			}
		})
	}
	all.Wait()
}
