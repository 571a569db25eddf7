package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A house is a worker in which every part is real: the queue, the runtime with
// its supervisor, the records and logs on disk.
type house struct {
	t        *testing.T
	queue    worker.Memory
	runtime  worker.Runtime
	instance *container.Instance
	store    *record.Store
	log      *logText
	worker   *worker.Worker

	workspaces, temp, instances string // folders, empty unless a job runs
	before                      []string

	stop context.CancelFunc
	done chan error

	mu   sync.Mutex
	jobs map[string]*houseJob // by id
}

// A houseJob is a job for a house and what becomes of it.
type houseJob struct {
	name string
	spec container.Spec
	// size defaults to 64 MiB and half a CPU.
	size      jobsize.Request
	timeLimit time.Duration
	// during is called in each attempt once the job has printed a line "here".
	during func(h *house, id string)
	want   houseEnd
	// check looks at what else the job has to have left. It may be nil.
	check func(t *testing.T, j *houseJob)

	ended, handedBack chan struct{}

	events []worker.Event
	runs   []worker.Run // the ended run of each attempt that had one
	rec    record.Record
	text   string // its run log
	logged string // what the worker's log says of it
}

// A houseEnd is how a job has to end.
type houseEnd struct {
	Outcome  record.Outcome
	Reason   exit.Reason
	Why      exit.Word
	Code     int // noCode for none
	Attempts int64
	Auth     exit.Auth // of the last run
	State    worker.State
}

// The ends of jobs that more than one test knows.
var (
	goesWell     = houseEnd{record.Completed, "", "", 0, 1, exit.Verified, worker.Settled}
	imageMissing = houseEnd{record.Policy, "job-image-missing", "", noCode, 1, exit.Unchecked, worker.Settled}
)

// noCode stands for the code of a job that never ran.
const noCode = -1

// houseAttempts is how often a house tries a job.
const houseAttempts = 2

// fails is the end of a job that was tried as often as possible.
func fails(reason exit.Reason, code int, auth exit.Auth) houseEnd {
	return houseEnd{record.Failed, reason, "", code, houseAttempts, auth, worker.Dead}
}

// newHouse returns a house whose worker runs. make makes its runtime.
func newHouse(t *testing.T, makeRuntime func(*container.Instance, *slog.Logger) worker.Runtime) *house {
	t.Helper()
	h := &house{
		t: t, log: &logText{}, jobs: map[string]*houseJob{}, done: make(chan error, 1),
		store: &record.Store{Dir: t.TempDir()}, workspaces: t.TempDir(), temp: t.TempDir(), instances: t.TempDir(),
	}
	t.Setenv("TMPDIR", h.temp)
	var err error
	if h.instance, err = container.NewInstance(h.instances); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	h.runtime = makeRuntime(h.instance, log)
	h.before = names(t, h.instances)
	h.worker, err = worker.New(worker.Config{
		Queue: &h.queue, Runtime: h.runtime, Records: h.store, Host: "house-1",
		Slots: 2, Budget: jobsize.Budget{Mem: jobsize.Off(), CPU: jobsize.Off()},
		Attempts: houseAttempts, Backoff: worker.Backoff{Base: time.Millisecond}, CancelPoll: 50 * time.Millisecond,
		Log: log,
		OpenLog: func(jobID string) io.WriteCloser {
			return h.store.OpenLog(jobID, record.LogOptions{Enabled: true})
		},
		Hooks: worker.Hooks{
			Describe: h.describe, Prepare: h.prepare, Output: h.output, Artifacts: h.artifacts, Observe: h.observe,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.done <- h.worker.Run(ctx) }()
	return h
}

// describe and prepare read the job's data, as a control plane's would.
func (h *house) describe(_ context.Context, job worker.Job) (worker.Description, error) {
	var spec container.Spec
	err := json.Unmarshal(job.Data, &spec)
	return worker.Description{Image: spec.Image}, err
}

func (h *house) prepare(_ context.Context, p worker.Pickup) (made worker.Preparation, err error) {
	if err := json.Unmarshal(p.Job.Data, &made.Spec); err != nil {
		return made, err
	}
	if made.Dir, err = os.MkdirTemp(h.workspaces, ""); err != nil {
		return made, err
	}
	made.Cleanup = func(context.Context) error { return os.RemoveAll(made.Dir) }
	made.TimeLimit = h.job(p.Job.ID).timeLimit
	return made, nil
}

func (h *house) output(_ context.Context, p worker.Pickup, line []byte) error {
	if j := h.job(p.Job.ID); j.during != nil && string(line) == "here" {
		j.during(h, p.Job.ID)
	}
	return nil
}

func (h *house) artifacts(_ context.Context, p worker.Pickup, run worker.Run) (record.Run, error) {
	j := h.job(p.Job.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	j.runs = append(j.runs, run)
	return run.Record, nil
}

func (h *house) observe(_ context.Context, e worker.Event) error {
	j := h.job(e.Job)
	h.mu.Lock()
	defer h.mu.Unlock()
	j.events = append(j.events, e)
	switch e.Kind {
	case worker.JobEnded, worker.JobDead:
		close(j.ended)
	case worker.JobHandedBack:
		close(j.handedBack)
	}
	return nil
}

func (h *house) job(id string) *houseJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs[id]
}

// run brings the jobs from the queue to their records, stops the worker, and
// checks every end and that nothing is left.
func (h *house) run(jobs ...houseJob) {
	h.t.Helper()
	for i := range jobs {
		h.submit(fmt.Sprint("job-", i), &jobs[i])
	}
	for i := range jobs {
		<-jobs[i].ended
	}
	h.close()
	for i := range jobs {
		h.t.Run(jobs[i].name, func(t *testing.T) { h.checkEnd(t, fmt.Sprint("job-", i), &jobs[i]) })
	}
	if h.t.Failed() {
		h.t.Logf("the worker's log:\n%s", h.log.text())
	}
}

func (h *house) submit(id string, j *houseJob) {
	h.t.Helper()
	j.ended, j.handedBack = make(chan struct{}), make(chan struct{})
	if j.size == (jobsize.Request{}) {
		j.size = jobsize.Request{Memory: "64m", CPUs: "0.5"}
	}
	h.mu.Lock()
	h.jobs[id] = j
	h.mu.Unlock()
	data, err := json.Marshal(j.spec)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.queue.Submit(h.t.Context(), worker.Job{ID: id, Name: j.name, Data: data, Size: j.size}); err != nil {
		h.t.Fatal(err)
	}
}

// close stops the worker and checks that nothing is left of it and its jobs.
func (h *house) close() {
	h.t.Helper()
	h.stop()
	if err := <-h.done; err != nil {
		h.t.Errorf("Run: %v", err)
	}
	stats := h.worker.Stats()
	if stats.PickedUp+stats.Running+stats.InLine+stats.Orphans != 0 || stats.Used != (jobsize.Size{}) {
		h.t.Errorf("Stats() = %+v, want nothing held", stats)
	}
	if left, err := h.runtime.List(context.Background(), container.Labels{Instance: h.instance.ID()}); len(left) > 0 {
		h.t.Errorf("containers are left: %+v, %v", left, err)
	}
	if left, err := h.runtime.(container.Holder).Leftovers(context.Background(), h.instance.ID()); len(left) > 0 {
		h.t.Errorf("left behind: %+v, %v", left, err)
	}
	if diff := cmp.Diff(h.before, names(h.t, h.instances)); diff != "" {
		h.t.Errorf("files of runs are left (-before +after):\n%s", diff)
	}
	if err := h.instance.Close(); err != nil {
		h.t.Errorf("Close: %v", err)
	}
	for _, folder := range []string{h.instances, h.workspaces, h.temp} {
		if left := names(h.t, folder); len(left) > 0 {
			h.t.Errorf("files are left: %q", left)
		}
	}
	var want []string
	for id, j := range h.jobs {
		want = append(want, id+".json")
		if len(j.runs) > 0 {
			want = append(want, id+".log")
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(h.t, h.store.Dir)); diff != "" {
		h.t.Errorf("the folder of records holds (-want +got):\n%s", diff)
	}
}

// names lists what lies beneath a folder, sorted.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(folder, path); name != "." {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkEnd checks how a job ended: its record on disk, what its queue says of it
// and what was observed.
func (h *house) checkEnd(t *testing.T, id string, j *houseJob) {
	rec, err := h.store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	j.rec = rec
	text, err := os.ReadFile(filepath.Join(h.store.Dir, id+".log"))
	if err != nil && len(j.runs) > 0 {
		t.Error(err)
	}
	j.text = string(text)
	for line := range strings.Lines(h.log.text()) {
		if strings.Contains(line, " job="+id+" ") {
			j.logged += line
		}
	}
	status, err := h.queue.Status(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	got := houseEnd{Outcome: rec.Outcome, Reason: rec.Reason, Why: rec.Why, Code: noCode, Attempts: *rec.Attempt, State: status.State}
	if rec.ExitCode != nil {
		got.Code = int(*rec.ExitCode)
	}
	if len(j.runs) > 0 {
		got.Auth = j.runs[len(j.runs)-1].Result.Auth
	}
	if j.timeLimit > 0 {
		// How far the job had come by then is the machine's to say.
		got.Auth = j.want.Auth
	}
	if diff := cmp.Diff(j.want, got); diff != "" {
		t.Errorf("the job ended otherwise (-want +got):\n%s\nits output:\n%s", diff, j.text)
	}
	if diff := cmp.Diff(j.want.kinds(), j.kinds()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if rec.Host != "house-1" || rec.JobCreatedAt == "" || rec.StartedAt < rec.JobCreatedAt || rec.EndedAt < rec.StartedAt || !rec.Readable() {
		t.Errorf("the record lacks what its worker knows: %+v", rec)
	}
	if j.check != nil {
		j.check(t, j)
	}
}

// kinds returns the job's events, attempt by attempt: the next one can be picked
// up before it is told that this one is retried.
func (j *houseJob) kinds() (kinds []worker.EventKind) {
	slices.SortStableFunc(j.events, func(a, b worker.Event) int { return a.Attempt - b.Attempt })
	for _, e := range j.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// kinds returns the events of a job that ends so. Each attempt before the last
// was retried.
func (e houseEnd) kinds() (kinds []worker.EventKind) {
	started := e != imageMissing && e.Reason != "container-never-started"
	for n := int64(1); n <= e.Attempts; n++ {
		kinds = append(kinds, worker.JobPicked)
		if started {
			kinds = append(kinds, worker.JobStarted)
		}
		switch {
		case n < e.Attempts:
			kinds = append(kinds, worker.JobRetried)
		case e.State == worker.Dead:
			kinds = append(kinds, worker.JobDead)
		default:
			kinds = append(kinds, worker.JobEnded)
		}
	}
	return kinds
}
