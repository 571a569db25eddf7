package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A fakeRuntime runs jobs as functions. It keeps the rules of a runtime: a run
// ends when its context does, and what runs is listed and can be stopped.
type fakeRuntime struct {
	facts  container.Facts
	images map[string]container.Image
	// run is what every job does. Defaults to exiting 0 at once.
	run func(ctx context.Context, spec container.Spec, io container.IO) (container.Result, error)
	// deaf is true while stops do not take.
	deaf     bool
	factsErr error

	mu sync.Mutex
	// imageErr, listErr and runErr fail the methods.
	imageErr, listErr, runErr error

	running map[string]fakeContainer
	specs   []container.Spec
	ios     []container.IO
	stops   []string
}

type fakeContainer struct {
	labels container.Labels
	stop   context.CancelFunc
}

func (f *fakeRuntime) Facts(context.Context) (container.Facts, error) { return f.facts, f.factsErr }

func (f *fakeRuntime) Image(_ context.Context, ref string) (container.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.imageErr != nil {
		return container.Image{}, f.imageErr
	}
	image, ok := f.images[ref]
	if !ok {
		return container.Image{}, fmt.Errorf("look up image %q: %w", ref, container.ErrImageMissing)
	}
	return image, nil
}

func (f *fakeRuntime) Run(ctx context.Context, spec container.Spec, io container.IO) (container.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f.mu.Lock()
	f.specs = append(f.specs, spec)
	f.ios = append(f.ios, io)
	failed := f.runErr
	f.mu.Unlock()
	if failed != nil {
		return container.Result{}, failed
	}
	f.add(spec, stop)
	result := container.Result{Started: time.Now()}
	var err error
	if f.run != nil {
		result, err = f.run(ctx, spec, io)
	}
	if !result.Orphan && !result.Detached {
		f.remove(spec.Name)
	}
	return result, err
}

func (f *fakeRuntime) add(spec container.Spec, stop context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == nil {
		f.running = map[string]fakeContainer{}
	}
	f.running[spec.Name] = fakeContainer{
		container.Labels{Instance: spec.Instance, Host: spec.Host, Job: spec.Job, Attempt: strconv.Itoa(spec.Attempt)},
		stop,
	}
}

func (f *fakeRuntime) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, name)
}

func (f *fakeRuntime) setDeaf(deaf bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = deaf
}

func (f *fakeRuntime) Stop(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stops = append(f.stops, name)
	if f.deaf {
		return errors.New("stop container: no answer")
	}
	if c, ok := f.running[name]; ok {
		c.stop()
		delete(f.running, name)
	}
	return nil
}

func (f *fakeRuntime) List(_ context.Context, filter container.Labels) ([]container.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return nil, f.listErr
	}
	var states []container.State
	for name, c := range f.running {
		if matches(filter, c.labels) {
			states = append(states, container.State{Name: name, Labels: c.labels, Running: true})
		}
	}
	return states, nil
}

func matches(filter, labels container.Labels) bool {
	match := func(want, got string) bool { return want == "" || want == got }
	return match(filter.Instance, labels.Instance) && match(filter.Host, labels.Host) &&
		match(filter.Job, labels.Job) && match(filter.Attempt, labels.Attempt)
}

func (f *fakeRuntime) runs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.specs)
}

// untilStopped is a job that goes on until it is stopped.
func untilStopped(ctx context.Context, _ container.Spec, _ container.IO) (container.Result, error) {
	<-ctx.Done()
	return container.Result{Code: 137, Aborted: true, Cause: context.Cause(ctx)}, nil
}

// exits is a job that exits with a code at once.
func exits(code int) func(context.Context, container.Spec, container.IO) (container.Result, error) {
	return func(context.Context, container.Spec, container.IO) (container.Result, error) {
		return container.Result{Code: code}, nil
	}
}

// takes is a job that exits 0 after a while.
func takes(d time.Duration) func(context.Context, container.Spec, container.IO) (container.Result, error) {
	return func(ctx context.Context, s container.Spec, io container.IO) (container.Result, error) {
		select {
		case <-time.After(d):
			return container.Result{}, nil
		case <-ctx.Done():
			return untilStopped(ctx, s, io)
		}
	}
}

// fakeRecords keeps records in memory and counts how often each was written.
type fakeRecords struct {
	mu       sync.Mutex
	records  map[string]record.Record
	writes   map[string]int
	writeErr error
	readErr  error
}

func (f *fakeRecords) Write(r record.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr != nil {
		return f.writeErr
	}
	if f.records == nil {
		f.records, f.writes = map[string]record.Record{}, map[string]int{}
	}
	f.records[r.JobID] = r
	f.writes[r.JobID]++
	return nil
}

func (f *fakeRecords) Read(jobID string) (record.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readErr != nil {
		return record.Record{}, f.readErr
	}
	r, ok := f.records[jobID]
	if !ok {
		return record.Record{}, fmt.Errorf("read record: %w", fs.ErrNotExist)
	}
	return r, nil
}

func (f *fakeRecords) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writeErr = err
}

// A bench is a worker with everything around it faked.
type bench struct {
	t       *testing.T
	queue   *worker.Memory
	runtime *fakeRuntime
	records *fakeRecords
	log     *logText
	worker  *worker.Worker

	mu            sync.Mutex
	events        []worker.Event
	notifications []worker.Notification

	stop context.CancelFunc
	done chan error
}

// newBench returns a bench whose worker has not started. change may alter the
// config, which runs one job at a time, knows neither jitter nor hooks, and
// whose events and notifications the bench keeps.
func newBench(t *testing.T, change func(b *bench, c *worker.Config)) *bench {
	t.Helper()
	b := &bench{
		t: t, queue: &worker.Memory{}, runtime: &fakeRuntime{}, records: &fakeRecords{}, log: &logText{},
		done: make(chan error, 1),
	}
	c := worker.Config{
		Queue: b.queue, Runtime: b.runtime, Records: b.records, Host: "host-1", Slots: 1,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	c.SetRandom(func() float64 { return 0 })
	c.Hooks.Observe = func(_ context.Context, e worker.Event) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
		return nil
	}
	c.Hooks.Notify = func(_ context.Context, n worker.Notification) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notifications = append(b.notifications, n)
		return nil
	}
	if change != nil {
		change(b, &c)
	}
	w, err := worker.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.worker = w
	return b
}

// start runs the worker until the test ends or b.end is called.
func (b *bench) start() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.done <- b.worker.Run(ctx) }()
}

// end stops the worker and returns what Run did.
func (b *bench) end() error {
	b.stop()
	return <-b.done
}

// submit adds jobs of those ids.
func (b *bench) submit(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.submitJob(worker.Job{ID: id, Name: "test"})
	}
}

func (b *bench) submitJob(job worker.Job) {
	b.t.Helper()
	if err := b.queue.Submit(context.Background(), job); err != nil {
		b.t.Fatalf("Submit(%q): %v", job.ID, err)
	}
}

// state returns where the job stands.
func (b *bench) state(id string) worker.State {
	b.t.Helper()
	s, err := b.queue.Status(context.Background(), id)
	if err != nil {
		b.t.Fatalf("Status(%q): %v", id, err)
	}
	return s.State
}

// record returns the job's record; the test fails when there is none.
func (b *bench) record(id string) record.Record {
	b.t.Helper()
	r, err := b.records.Read(id)
	if err != nil {
		b.t.Fatalf("Read(%q): %v", id, err)
	}
	return r
}

// wantRecord checks what the job's record says.
func (b *bench) wantRecord(id string, outcome record.Outcome, reason exit.Reason) record.Record {
	b.t.Helper()
	r := b.record(id)
	if r.Outcome != outcome || r.Reason != reason {
		b.t.Errorf("record of %q says %q, %q; want %q, %q", id, r.Outcome, r.Reason, outcome, reason)
	}
	return r
}

// wantReleased checks that the worker holds nothing.
func (b *bench) wantReleased() {
	b.t.Helper()
	s := b.worker.Stats()
	if s.Running != 0 || s.InLine != 0 || s.PickedUp != 0 || s.Used != (jobsize.Size{}) {
		b.t.Errorf("Stats() = %+v, want nothing held", s)
	}
}

func (b *bench) notified() []worker.Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]worker.Notification(nil), b.notifications...)
}

// kinds returns the kinds of the job's events in order.
func (b *bench) kinds(id string) (kinds []worker.EventKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Job == id {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// logText is a log that tests look into.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) has(event string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.buf.Bytes(), []byte("msg="+event))
}

func (l *logText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
