package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/livejobs/redisrow"
)

var liveCommand = command{
	name:    "live",
	summary: "show which hosts are there, and what they run now",
	example: "  worker live -redis 127.0.0.1:6379\n  worker live -redis rediss://user:password@redis.example:6380/0 -json",
	run:     live,
}

// A liveFleet is the JSON form of what live prints.
type liveFleet struct {
	At      time.Time     `json:"at"` // of the registry's clock
	Hosts   []liveHost    `json:"hosts"`
	Skipped []liveSkipped `json:"skipped"`
	More    int64         `json:"more"` // hosts that were not read
}

type liveHost struct {
	Host    string           `json:"host"`
	At      time.Time        `json:"at"` // of its last beat
	Stale   bool             `json:"stale"`
	Slots   int              `json:"slots"`
	Used    int              `json:"used"`
	Version string           `json:"version"`
	Jobs    []livejobs.Entry `json:"jobs"`     // null when they are not known
	More    *int64           `json:"jobsMore"` // null when it is not known
}

type liveSkipped struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

func live(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var redis redisFlags
	redis.bind(f)
	asJSON := f.Bool("json", false, "print JSON")
	if _, err := p.parse(f, args, 0, 0); err != nil {
		return err
	}
	snapshot, err := readLive(ctx, redis)
	if err != nil {
		return err
	}
	slices.SortFunc(snapshot.Hosts, func(a, b redisrow.Host) int { return cmp.Compare(a.Name, b.Name) })
	if *asJSON {
		return p.printJSON(liveForm(snapshot))
	}
	return p.printLive(snapshot, cmp.Or(redis.prefix, redisrow.DefaultPrefix))
}

func readLive(ctx context.Context, redis redisFlags) (redisrow.Snapshot, error) {
	if redis.address == "" {
		return redisrow.Snapshot{}, usagef("flag -redis is missing: it names the Redis server to which the workers publish, such as 127.0.0.1:6379")
	}
	option, err := redisrow.ClientOption(redis.url())
	if err != nil {
		return redisrow.Snapshot{}, usagef("flag -redis: %w", err)
	}
	client, err := connectRedis(option)
	if err != nil {
		return redisrow.Snapshot{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	snapshot, err := redisrow.Fleet(ctx, client, redisrow.FleetConfig{Prefix: redis.prefix})
	if errors.Is(err, redisrow.ErrConfig) {
		return redisrow.Snapshot{}, usagef("%w", err)
	}
	if err != nil {
		return redisrow.Snapshot{}, unavailablef("%w", err)
	}
	return snapshot, nil
}

func liveForm(s redisrow.Snapshot) liveFleet {
	form := liveFleet{At: s.At.UTC(), Hosts: []liveHost{}, Skipped: []liveSkipped{}, More: s.More}
	for _, h := range s.Hosts {
		host := liveHost{Host: h.Name, At: h.At.UTC(), Stale: h.Stale, Slots: h.Slots, Used: h.Used, Version: h.Version, Jobs: h.Jobs}
		if h.MoreKnown {
			host.More = &h.More
		}
		form.Hosts = append(form.Hosts, host)
	}
	for _, row := range s.Skipped {
		form.Skipped = append(form.Skipped, liveSkipped{row.Name, row.Why})
	}
	return form
}

// printLive prints a line for each host and, below it, one for each of its jobs.
func (p *program) printLive(s redisrow.Snapshot, prefix string) error {
	if len(s.Hosts) == 0 {
		fmt.Fprintf(p.stdout, "no host publishes under %s\n", printable([]byte(prefix)))
	}
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	if len(s.Hosts) > 0 {
		fmt.Fprint(t, "HOST\tSTATE\tBEAT\tSLOTS\tVERSION\tJOB\tPROJECT\tSIZE\tFOR\n")
	}
	for _, h := range s.Hosts {
		for i, text := range liveRows(h, s.At) {
			if i > 0 {
				text = "\t\t\t\t\t" + text
			}
			fmt.Fprintln(t, text)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, row := range s.Skipped {
		fmt.Fprintf(p.stdout, "skipped %q: %s\n", printable([]byte(row.Name)), row.Why)
	}
	if s.More > 0 {
		fmt.Fprintf(p.stdout, "%d more hosts are not shown\n", s.More)
	}
	return nil
}

// liveRows are the lines of a host, of which the first has its own columns.
func liveRows(h redisrow.Host, now time.Time) []string {
	state := "live"
	if h.Stale {
		state = "stale"
	}
	slots := fmt.Sprintf("%d/%d", h.Used, h.Slots)
	if h.Version == "" { // its row has expired
		slots = "-"
	}
	var rows []string
	for _, e := range h.Jobs {
		rows = append(rows, liveJob(e, now))
	}
	switch {
	case h.MoreKnown && h.More > 0:
		rows = append(rows, fmt.Sprintf("%d more\t\t\t", h.More))
	case h.Version != "" && (h.Jobs == nil || !h.MoreKnown):
		rows = append(rows, "more that can't be read\t\t\t")
	}
	if len(rows) == 0 {
		rows = []string{"-\t\t\t"}
	}
	rows[0] = strings.Join([]string{h.Name, state, ageText(now.Sub(h.At)), slots, orDash(h.Version), rows[0]}, "\t")
	return rows
}

func liveJob(e livejobs.Entry, now time.Time) string {
	id, size := e.ID, "-"
	if e.Orphan {
		id += " (orphan)"
	}
	if e.Mem > 0 && e.CPU > 0 {
		size = fmt.Sprintf("%v/%v", e.Mem, e.CPU)
	}
	return strings.Join([]string{id, orDash(e.Project), size, ageText(now.Sub(e.At))}, "\t")
}

// ageText returns an age to the second. Clocks of hosts differ: none is negative.
func ageText(d time.Duration) string {
	return max(d, 0).Truncate(time.Second).String()
}
