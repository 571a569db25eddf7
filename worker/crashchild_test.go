package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/spool"
)

// The test binary is also the worker that is killed, and whoever submits jobs
// to it.
func init() {
	roles := map[string]func(crashOrders) error{"crash-worker": crashWork, "crash-submit": crashSubmit}
	if len(os.Args) < 3 || roles[os.Args[1]] == nil {
		return
	}
	var o crashOrders
	err := json.Unmarshal([]byte(os.Args[2]), &o)
	if err == nil {
		err = roles[os.Args[1]](o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A crashSite is where the processes of a crash test meet.
type crashSite struct {
	Root string
	// Supervisor, when set, is the program under which the jobs run as real
	// processes, in leaves of Parent where that is not empty. Otherwise they run
	// in the worker.
	Supervisor []string
	Parent     string
}

func (s crashSite) path(name string) string { return filepath.Join(s.Root, name) }
func (s crashSite) spool() string           { return s.path("spool") }
func (s crashSite) instances() string       { return s.path("instances") }
func (s crashSite) paused() string          { return s.path("paused") }
func (s crashSite) records() *record.Store  { return &record.Store{Dir: s.path("records")} }

// The oracle: files that the worker only appends to, a line in one write.
func (s crashSite) ledger() string    { return s.path("ledger") }    // "job attempt" of each run
func (s crashSite) notices() string   { return s.path("notices") }   // the id of each notification
func (s crashSite) submitted() string { return s.path("submitted") } // the id of each job that was accepted

// crashOrders say what a child does.
type crashOrders struct {
	crashSite
	Prefix string // of the ids that it submits
	// The worker kills itself when it comes to this step for the Hit-th time, or
	// a time After that. With no step it goes on until the spool holds only dead
	// jobs and prints the names of the steps that it came by.
	Step  string
	Hit   int
	After time.Duration
	// Forever lets it go on until somebody else kills it.
	Forever bool
}

// A crashKind is a kind of job, by its name, and its only right end.
type crashKind struct {
	name    string
	outcome record.Outcome
	attempt int64
	dead    bool
}

var crashKinds = []crashKind{
	{name: "completes", outcome: record.Completed, attempt: 1},
	{name: "refuses", outcome: record.Policy, attempt: 1},
	{name: "fails-once", outcome: record.Completed, attempt: 2},
	{name: "pauses", outcome: record.Completed, attempt: 1},
	{name: "lasts", outcome: record.Completed, attempt: 1},
	{name: "fails", outcome: record.Failed, attempt: 3, dead: true},
}

// crashCode is the exit code of an attempt.
func crashCode(kind string, attempt int) int {
	switch {
	case kind == "refuses":
		return 2
	case kind == "fails", kind == "fails-once" && attempt == 1:
		return 1
	}
	return 0
}

// crashBacklog is how many jobs may be under way before no more are submitted.
const crashBacklog = 24

// crashSubmit submits jobs of each kind in turn until it is killed.
func crashSubmit(o crashOrders) error {
	queue, err := spool.Open(spool.Config{Dir: o.spool()})
	if err != nil {
		return err
	}
	fmt.Println("up")
	for i := 0; ; i++ {
		for under, err := crashUnderWay(o.crashSite); under > crashBacklog || err != nil; under, err = crashUnderWay(o.crashSite) {
			if err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond) // not to fill the disk
		}
		job := worker.Job{ID: fmt.Sprintf("%s-%d", o.Prefix, i), Name: crashKinds[i%len(crashKinds)].name}
		if err := queue.Submit(context.Background(), job); err != nil {
			return err
		}
		if err := appendLine(o.submitted(), job.ID); err != nil {
			return err
		}
	}
}

// crashUnderWay returns how many jobs are known to the spool and not dead. Every
// job that is known has its id taken.
func crashUnderWay(s crashSite) (int, error) {
	ids, err := os.ReadDir(filepath.Join(s.spool(), "ids"))
	if err != nil {
		return 0, err
	}
	dead, err := os.ReadDir(filepath.Join(s.spool(), "dead"))
	return len(ids) - len(dead), err
}

// appendLine adds a line in one write.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// A crashChild is a worker that may be killed.
type crashChild struct {
	crashOrders
	mu   sync.Mutex
	seen map[string]int // steps
}

// step kills this process where its orders say so.
func (c *crashChild) step(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[name]++
	if name != c.Step || c.seen[name] != c.Hit {
		return
	}
	fmt.Println(name)
	if c.After == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	time.AfterFunc(c.After, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
}

// crashWork is a worker's program: it sweeps what dead ones left and works.
func crashWork(o crashOrders) error {
	c := &crashChild{crashOrders: o, seen: map[string]int{}}
	fmt.Println("up")
	instance, err := container.NewInstance(o.instances())
	if err != nil {
		return err
	}
	queue, err := spool.Open(spool.Config{Dir: o.spool()})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	config, err := c.config(instance)
	if err != nil {
		return err
	}
	if err := c.sweep(ctx, config.Runtime); err != nil {
		return err
	}
	config.Queue = queue
	w, err := worker.New(config)
	if err != nil {
		return err
	}
	if o.Step == "" && !o.Forever {
		go c.stopWhenDrained(stop)
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println(slices.Sorted(maps.Keys(c.seen)))
	return errors.Join(queue.Close(), instance.Close())
}

// sweep removes what dead workers left.
func (c *crashChild) sweep(ctx context.Context, runtime worker.Runtime) error {
	config := container.SweepConfig{Folder: c.instances()}
	if holder, ok := runtime.(container.Holder); ok {
		config.Holders = append(config.Holders, holder)
	}
	left, err := container.Sweep(ctx, config)
	for _, l := range left {
		err = errors.Join(err, l.Err)
	}
	return errors.Join(err, c.records().Reap(ctx))
}

// stopWhenDrained waits until nothing but dead jobs is left, and no process but
// this one has claims.
func (c *crashChild) stopWhenDrained(stop func()) {
	for {
		under, err := crashUnderWay(c.crashSite)
		claims, _ := os.ReadDir(filepath.Join(c.spool(), "claims"))
		if err == nil && under == 0 && len(claims) == 1 {
			stop()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *crashChild) config(instance *container.Instance) (worker.Config, error) {
	config := worker.Config{
		Records: c.records(), Host: "crash-1", Instance: instance.ID(), Slots: 4,
		Budget:  jobsize.Budget{Mem: jobsize.Off(), CPU: jobsize.Off()},
		Backoff: worker.Backoff{Base: time.Millisecond}, CancelPoll: 20 * time.Millisecond,
		Stalls: 1 << 20, // here it is not the job that kills its worker
		Hooks: worker.Hooks{
			Pause:   c.pause,
			Prepare: c.prepare,
			Notify:  func(_ context.Context, n worker.Notification) error { return appendLine(c.notices(), n.ID) },
		},
	}
	config.SetStep(c.step)
	if len(c.Supervisor) == 0 {
		config.Runtime = crashRuntime{c}
		return config, nil
	}
	var err error
	config.Hooks.Output = func(context.Context, worker.Pickup, []byte) error { c.step("running"); return nil }
	config.Runtime, err = container.NewProcess(container.ProcessConfig{
		Supervisor: c.Supervisor, Instance: instance, CgroupParent: c.Parent, Grace: time.Second,
	})
	return config, err
}

// pause puts some jobs off for a moment, once.
func (c *crashChild) pause(_ context.Context, p worker.Pickup) (time.Time, error) {
	if p.Job.Name != "pauses" {
		return time.Time{}, nil
	}
	err := os.Mkdir(filepath.Join(c.paused(), p.Job.ID), 0o700)
	if errors.Is(err, os.ErrExist) {
		return time.Time{}, nil
	}
	return time.Now().Add(10 * time.Millisecond), err
}

// crashScript is a run: its line in the ledger, what it has to do, its code.
const crashScript = `echo "$0" >>"$1"; echo running; sleep "$2"; exit "$3"`

func (c *crashChild) prepare(_ context.Context, p worker.Pickup) (made worker.Preparation, err error) {
	sleep := "0"
	if p.Job.Name == "lasts" {
		sleep = "0.05"
	}
	made.Spec = container.Spec{Args: []string{
		"/bin/sh", "-c", crashScript,
		fmt.Sprint(p.Job.ID, " ", p.Attempt), c.ledger(), sleep, strconv.Itoa(crashCode(p.Job.Name, p.Attempt)),
	}, Size: jobsize.Size{Mem: 64, CPU: 25}}
	return made, nil
}

// A crashRuntime does what crashScript does without a process.
type crashRuntime struct{ child *crashChild }

func (r crashRuntime) Facts(context.Context) (container.Facts, error) { return container.Facts{}, nil }
func (r crashRuntime) Stop(context.Context, string) error             { return nil }

func (r crashRuntime) Image(context.Context, string) (container.Image, error) {
	return container.Image{}, nil
}

func (r crashRuntime) List(context.Context, container.Labels) ([]container.State, error) {
	return nil, nil
}

func (r crashRuntime) Run(_ context.Context, spec container.Spec, _ container.IO) (container.Result, error) {
	started := time.Now()
	args := spec.Args[3:]
	if err := appendLine(args[1], args[0]); err != nil {
		return container.Result{}, err
	}
	r.child.step("running")
	pause, err := time.ParseDuration(args[2] + "s")
	if err != nil {
		return container.Result{}, err
	}
	time.Sleep(pause)
	code, err := strconv.Atoi(args[3])
	return container.Result{Name: spec.Name, Code: code, Started: started, Ended: time.Now()}, err
}
