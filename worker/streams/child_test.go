package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// childEnv holds what a worker process of a test is told, as JSON.
const childEnv = "STREAMS_TEST_WORKER"

// TestMain lets the test binary be the worker processes.
func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		var c child
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.work()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A child is a worker process on a host.
type child struct {
	Addr, Prefix, Host string
	Lease              time.Duration
	Slots              int
	Memory             int64 // the host's, in MiB; 0 for no limit
	Hosts              []string
	Dir                string // of the ledger, and of the files that end held jobs
	Records            string // folder
	Finish             bool   // a run goes on when its lease was lost
}

func (c *child) work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ledger, err := os.OpenFile(filepath.Join(c.Dir, "ledger"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	write := func(what, job string, attempt any) {
		// One write, so that the order of the lines is that of the events.
		fmt.Fprintf(ledger, "%s %s %v %s %d\n", what, job, attempt, c.Host, os.Getpid())
	}
	option, err := ClientOption("redis://" + c.Addr)
	if err != nil {
		return err
	}
	option.Dialer.Timeout = time.Second
	client, err := connect(ctx, option)
	if err != nil {
		return err
	}
	log := slog.New(&ledgerLog{slog.NewTextHandler(os.Stderr, nil), write})
	q, err := New(Config{Client: client, Prefix: c.Prefix, Host: c.Host, Lease: c.Lease, Log: log})
	if err != nil {
		return err
	}
	config := worker.Config{
		Queue: q, Mirror: q, Runtime: &fastRuntime{write: write, dir: c.Dir},
		Records: &record.Store{Dir: c.Records, NoSync: true}, Host: c.Host, Slots: c.Slots,
		Budget: jobsize.Budget{Mem: jobsize.Off(), CPU: jobsize.Off()},
		Stalls: 100, Drain: time.Minute, Log: log,
		Backoff: worker.Backoff{Base: 10 * time.Millisecond, Max: 10 * time.Millisecond},
		Hooks: worker.Hooks{Observe: func(_ context.Context, e worker.Event) error {
			if e.Kind != worker.JobStarted && e.Kind != worker.JobPicked {
				write(string(e.Kind), e.Job, e.Attempt)
			}
			return nil
		}},
	}
	if c.Memory > 0 {
		config.Budget.Mem = jobsize.Known(c.Memory)
	}
	if len(c.Hosts) > 0 {
		config.Hosts = func(context.Context) ([]string, error) { return c.Hosts, nil }
	}
	if c.Finish {
		config.OnLeaseLost = worker.FinishRun
	}
	w, err := worker.New(config)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// connect makes a client, also of a server that is away now.
func connect(ctx context.Context, option rueidis.ClientOption) (client rueidis.Client, err error) {
	for ctx.Err() == nil {
		if client, err = rueidis.NewClient(option); err == nil {
			return client, nil
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return nil, err
}

// A ledgerLog also writes what the oracle wants to know into the ledger.
type ledgerLog struct {
	slog.Handler
	write func(what, job string, attempt any)
}

func (l *ledgerLog) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "lease_lost", "job_settled_from_record", "job_passed_on":
		l.write(r.Message, "-", 0)
	}
	return l.Handler.Handle(ctx, r)
}

func (l *ledgerLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	write := l.write
	for _, a := range attrs {
		if a.Key == "job" {
			job := a.Value.String()
			write = func(what, _ string, attempt any) { l.write(what, job, attempt) }
		}
	}
	return &ledgerLog{l.Handler.WithAttrs(attrs), write}
}

// A fastRuntime runs jobs as waits: one whose id begins with hold until the file
// of its name is there, any other for some milliseconds. Each first attempt of an
// id that ends in 7 fails.
type fastRuntime struct {
	write func(what, job string, attempt any)
	dir   string
}

func (f *fastRuntime) Facts(context.Context) (container.Facts, error) {
	return container.Facts{Runtime: "test", Isolated: true}, nil
}

func (f *fastRuntime) Image(context.Context, string) (container.Image, error) {
	return container.Image{}, container.ErrImageMissing
}

func (f *fastRuntime) Run(ctx context.Context, spec container.Spec, _ container.IO) (container.Result, error) {
	f.write("start", spec.Job, spec.Attempt)
	defer f.write("end", spec.Job, spec.Attempt)
	result := container.Result{Name: spec.Name, Started: time.Now()}
	if strings.HasPrefix(spec.Job, "hold") {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(f.dir, spec.Job)); err == nil {
				break
			}
			sleep(ctx, 5*time.Millisecond)
		}
	} else {
		n, _ := strconv.Atoi(spec.Job[strings.LastIndexByte(spec.Job, '-')+1:])
		sleep(ctx, time.Duration(1+n%40)*time.Millisecond)
	}
	result.Ended = time.Now()
	if ctx.Err() != nil {
		result.Code, result.Aborted, result.Cause = 137, true, context.Cause(ctx)
	} else if strings.HasSuffix(spec.Job, "7") && spec.Attempt == 1 {
		result.Code = 1
	}
	return result, nil
}

func (f *fastRuntime) Stop(context.Context, string) error { return nil }

func (f *fastRuntime) List(context.Context, container.Labels) ([]container.State, error) {
	return nil, nil
}
