package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/livejobs/redisrow"
	"github.com/edgehero/dispatch/worker"
)

var serveCommand = command{
	name:    "serve",
	summary: "take jobs off the queue until a signal comes; a second one ends at once",
	example: "  worker serve -slots 4 -allow-process\n  DISPATCH_DATA=/var/lib/dispatch worker serve -drain 30s\n" +
		"  DISPATCH_REDIS=redis://user:password@redis.example:6379 worker serve",
	run: serve,
}

// serveFlags are what serve takes beside the host's flags.
type serveFlags struct {
	host         hostFlags
	redis        redisFlags
	slots        int
	memory, cpus string
	attempts     int
	drain        time.Duration
	allowProcess bool
	retention    time.Duration
	debug        string
	json         bool
}

func (s *serveFlags) bind(f *flag.FlagSet) {
	s.host.bind(f)
	s.redis.bind(f)
	f.IntVar(&s.slots, "slots", 0, "how many jobs run at a time (default one for each CPU)")
	f.StringVar(&s.memory, "memory", "", "memory for all jobs together, such as 12g, or off (default the host's less a reserve)")
	f.StringVar(&s.cpus, "cpus", "", "CPUs for all jobs together, such as 3.5, or off (default the host's less a reserve)")
	f.IntVar(&s.attempts, "attempts", 3, "how often a failed job is tried in all")
	f.DurationVar(&s.drain, "drain", 0, "how long running jobs may go on after the first signal")
	f.BoolVar(&s.allowProcess, "allow-process", false, "run jobs without an image as processes of this host, without walls")
	f.DurationVar(&s.retention, "retention", 0, "age at which records and logs are removed (default never)")
	f.StringVar(&s.debug, "debug-address", "", "loopback `address` for /debug/vars, such as 127.0.0.1:8080 (default none)")
	f.BoolVar(&s.json, "json", false, "print each event as a line of JSON")
}

// budget reads what all jobs may have together; an empty text is unknown, and
// then the host's facts decide.
func (s *serveFlags) budget() (b jobsize.Budget, err error) {
	switch s.memory {
	case "":
	case "off":
		b.Mem = jobsize.Off()
	default:
		m, err := jobsize.ParseMemory(s.memory)
		if err != nil {
			return b, usagef("flag -memory: %w", err)
		}
		b.Mem = jobsize.Known(int64(m))
	}
	switch s.cpus {
	case "":
	case "off":
		b.CPU = jobsize.Off()
	default:
		c, err := jobsize.ParseCPUs(s.cpus)
		if err != nil {
			return b, usagef("flag -cpus: %w", err)
		}
		b.CPU = jobsize.Known(int64(c))
	}
	return b, nil
}

func serve(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var flags serveFlags
	flags.bind(f)
	if _, err := p.parse(f, args, 0, 0); err != nil {
		return err
	}
	budget, err := flags.budget()
	if err != nil {
		return err
	}
	if flags.debug != "" && !isLoopback(flags.debug) {
		return usagef("flag -debug-address is %.100q, want a loopback address and a port such as 127.0.0.1:8080", flags.debug)
	}
	var d *display
	if !flags.json {
		d = p.openDisplay()
	}
	h, err := p.openHost(flags.host)
	if err != nil {
		return err
	}
	h.records.Retention = flags.retention
	q, err := h.awaitQueue(ctx, flags.redis)
	if err != nil {
		return errors.Join(err, h.close())
	}
	err = p.serveQueue(ctx, h, d, flags, budget, q)
	return errors.Join(err, q.close(), h.close())
}

func (p *program) serveQueue(ctx context.Context, h *host, d *display, flags serveFlags, budget jobsize.Budget, q *queue) error {
	live := &livejobs.Registry{}
	w, err := worker.New(worker.Config{
		Queue: q, Runtime: h.venues, Records: h.records, Mirror: q.mirror, Live: live, Hosts: q.hosts,
		Host: h.name, Instance: h.instance.ID(), Slots: flags.slots, Budget: budget,
		DefaultSize: h.defaultSize(ctx, budget),
		Attempts:    flags.attempts, Drain: flags.drain, OpenLog: h.openLog, Log: h.log,
		Hooks: worker.Hooks{
			Describe: h.describe(flags.allowProcess),
			Prepare:  h.prepare,
			Output:   d.outputHook(),
			Observe:  func(_ context.Context, e worker.Event) error { p.tell(servedOf(e), flags.json); return nil },
		},
	})
	if err != nil {
		return usagef("%w", err)
	}
	if flags.debug != "" {
		stop, err := serveDebug(flags.debug, w)
		if err != nil {
			return unavailablef("%w", err)
		}
		defer stop()
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-p.stopNow:
			w.StopNow()
		case <-done:
		}
	}()
	if q.hosts != nil {
		publisher, err := h.newPublisher(flags.redis, w, live)
		if err != nil {
			return err
		}
		var leave func()
		ctx, leave = h.publish(ctx, q, publisher)
		defer leave()
	}
	housekeeping := make(chan struct{})
	go func() {
		defer close(housekeeping)
		h.keepHouse(ctx)
	}()
	if ctx.Err() == nil { // it ends before that where the host's name is taken
		p.tell(served{Event: "serving", At: time.Now().UTC(), Queue: q.place, Slots: w.Stats().Slots}, flags.json)
	}
	defer d.start(ctx, live, h.running)()
	err = w.Run(ctx)
	<-housekeeping
	if taken := context.Cause(ctx); errors.Is(taken, redisrow.ErrNameTaken) {
		return errors.Join(fmt.Errorf("%w with -host", taken), err)
	}
	return err
}

// keepHouse removes what dead workers left and what is past its retention, at
// once and then again and again until ctx ends.
func (h *host) keepHouse(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		h.sweep(ctx)
		if err := h.records.Reap(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("reap_failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// serveDebug shows the worker's numbers at /debug/vars of a loopback address.
func serveDebug(address string, w *worker.Worker) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("flag -debug-address: %w", err)
	}
	stats := expvar.Func(func() any { return w.Stats() })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, "{\"dispatch\": %s}\n", stats)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with Close
	}()
	return func() { server.Close(); <-ended }, nil
}

// isLoopback reports whether an address has a port and a host that only this
// machine reaches.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
