package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// A result is what one round measured of one system.
type result struct {
	JobsPerSecond float64 `json:"jobsPerSecond"`
	P99           float64 `json:"p99"` // of the latency, in ms
}

// A load is what a round asks of a system.
type load struct {
	addr    string
	prefix  string // of the keys, fresh for each round
	slots   int
	backlog int           // jobs for the throughput
	paced   int           // jobs for the latency
	pace    time.Duration // between two of those
}

// A system runs one round.
type system struct {
	name string
	run  func(ctx context.Context, l load) (result, error)
}

func main() {
	addr := flag.String("redis", "127.0.0.1:6379", "host:port of a Redis server for this alone")
	node := flag.String("node", "bullmq", "folder of the program for BullMQ, or none to leave that out")
	rounds := flag.Int("rounds", 5, "rounds for each number of slots")
	backlog := flag.Int("jobs", 5000, "jobs of a backlog")
	paced := flag.Int("paced", 500, "jobs for the latency")
	pace := flag.Duration("pace", 5*time.Millisecond, "time between two of those")
	flag.Parse()
	if err := measure(*addr, *node, *rounds, load{addr: *addr, backlog: *backlog, paced: *paced, pace: *pace}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(addr, node string, rounds int, l load) error {
	systems := []system{{"queue", dispatch(queueAlone)}, {"worker", dispatch(wholeWorker)}, {"asynq", runAsynq}}
	if _, err := exec.LookPath("node"); err != nil || node == "none" {
		fmt.Println("bullmq is left out")
	} else {
		systems = append(systems, system{"bullmq", bullmq(node)})
	}
	ctx := context.Background()
	for _, slots := range []int{1, 8, 64} {
		l.slots = slots
		speeds, latencies := map[string][]float64{}, map[string][]float64{}
		for round := range rounds {
			for i := range systems {
				s := systems[(i+round)%len(systems)]
				l.prefix = fmt.Sprintf("bench-%s-%d-%d-%d", s.name, slots, round, time.Now().UnixMilli())
				r, err := s.run(ctx, l)
				if err != nil {
					return fmt.Errorf("measure %s with %d slots: %w", s.name, slots, err)
				}
				speeds[s.name] = append(speeds[s.name], r.JobsPerSecond)
				latencies[s.name] = append(latencies[s.name], r.P99)
			}
		}
		report(slots, systems, speeds, latencies)
	}
	return nil
}

func report(slots int, systems []system, speeds, latencies map[string][]float64) {
	best := 0.0
	for _, s := range systems {
		speed := median(speeds[s.name])
		fmt.Printf("%2d slots  %-6s  %8.0f jobs/s  p99 %7.2f ms  (of %d rounds)\n", slots, s.name, speed, median(latencies[s.name]), len(speeds[s.name]))
		if s.name == "asynq" || s.name == "bullmq" {
			best = max(best, speed)
		}
	}
	fmt.Printf("%2d slots  to the better peer: the queue %.2f, the worker %.2f\n", slots, median(speeds["queue"])/best, median(speeds["worker"])/best)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// p99 returns the 99th percentile of durations, in ms.
func p99(durations []time.Duration) float64 {
	slices.Sort(durations)
	return float64(durations[len(durations)*99/100]) / float64(time.Millisecond)
}
