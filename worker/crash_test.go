package worker_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/record"
)

// crashKills is how many workers the crash tests kill in all. DISPATCH_CRASH_KILLS
// sets another number.
func crashKills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("DISPATCH_CRASH_KILLS")
	if text == "" {
		if testing.Short() {
			return 80
		}
		return 500
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("DISPATCH_CRASH_KILLS is %q, want a number of kills", text)
	}
	return n
}

// Of the kills, three in four are of workers with jobs that run in the worker:
// those are fast.
func TestCrash(t *testing.T) { testCrash(t, crashSite{}, crashKills(t)*3/4) }

// The others are of workers with jobs that are processes.
func TestCrashProcess(t *testing.T) {
	testCrash(t, crashSite{Supervisor: []string{lab.Supervisor(t)}}, crashKills(t)/4)
}

// siteKills bounds the kills of one site, whose records are all looked at after
// each.
const siteKills = 300

// testCrash kills workers at each step of a job's life and at random instants
// while jobs are submitted, lets a last one work the spool off, and holds what
// is left against what ran.
func testCrash(t *testing.T, site crashSite, kills int) {
	totals := crashTotals{steps: map[string]int{}}
	for left := kills; left > 0; left -= siteKills {
		here := site
		here.Root = t.TempDir()
		c := &crash{crashSite: here, t: t, over: map[string]int64{}, totals: &totals}
		c.run(min(left, siteKills))
		if t.Failed() {
			break
		}
	}
	t.Log(totals.String())
}

// crashTotals are what the test prints.
type crashTotals struct {
	kills, random, submitters int
	steps                     map[string]int
	jobs, runs, repeats       int
	notices, overJobs         int
	temps                     int
}

func (n *crashTotals) String() string {
	return fmt.Sprintf("%d kills of workers (%d at random instants, the others at %d steps: %v), %d of submitters; "+
		"%d jobs settled, %d runs, %d of them of an attempt that had run and was not settled, %d notifications; "+
		"%d jobs were settled at a kill and none ran again; %d temporary files",
		n.kills, n.random, len(n.steps), n.steps, n.submitters, n.jobs, n.runs, n.repeats, n.notices, n.overJobs, n.temps)
}

// A crash is a site whose processes are killed, and what was seen of it.
type crash struct {
	crashSite
	t *testing.T

	mu     sync.Mutex
	over   map[string]int64 // by the digest of a job that has ended: the ledger's length when that was seen
	totals *crashTotals
}

// run kills workers and submitters, and checks what is left.
func (c *crash) run(kills int) {
	if err := os.Mkdir(c.paused(), 0o700); err != nil {
		c.t.Fatal(err)
	}
	plan := c.plan(kills)
	stopSubmitting := c.submit()
	var all sync.WaitGroup
	next := make(chan crashOrders)
	for range 2 { // several workers work off a spool
		all.Go(func() {
			for o := range next {
				c.kill(o)
			}
		})
	}
	for i, o := range plan {
		if c.t.Failed() {
			break
		}
		next <- o
		if i%20 == 19 {
			stopSubmitting()
			stopSubmitting = c.submit()
		}
	}
	close(next)
	all.Wait()
	stopSubmitting()
	if c.t.Failed() {
		return
	}
	c.totals.overJobs += len(c.over)
	c.age()
	c.drain()
	c.check()
}

// plan returns the orders of the workers to be killed: four in five at a step,
// as often at each, every other one a little later; the rest at random.
func (c *crash) plan(kills int) []crashOrders {
	steps := crashSteps
	var plan []crashOrders
	for i := range kills {
		o := crashOrders{crashSite: c.crashSite, Forever: true}
		if i%6 != 5 {
			at := i - i/6
			o.Step, o.Hit = steps[at%len(steps)], 1+rand.IntN(2)
			if at/len(steps)%2 == 1 {
				o.After = rand.N(2 * time.Millisecond)
			}
		}
		plan = append(plan, o)
	}
	rand.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

// crashSteps are all the steps of a job's life, and "running", which is within
// its run.
var crashSteps = []string{
	"admit", "budget", "classify", "defer", "describe", "earlier", "id", "image", "leftovers", "notify", "pause",
	"prepare", "record", "release", "run", "running", "settle", "settled", "size",
}

// start starts a child and returns once it says that it is up.
func (c *crash) start(role string, o crashOrders) (cmd *exec.Cmd, out *bufio.Reader, stderr *bytes.Buffer) {
	orders, err := json.Marshal(o)
	if err != nil {
		c.t.Error(err)
		return nil, nil, nil
	}
	cmd = exec.Command(os.Args[0], role, string(orders))
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Error(err)
		return nil, nil, nil
	}
	out = bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "up\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c.t.Errorf("%s says %q, %v, want that it is up\n%s", role, line, err, stderr)
		return nil, nil, nil
	}
	return cmd, out, stderr
}

// submit starts a process that submits jobs, and returns what kills it.
func (c *crash) submit() (kill func()) {
	c.mu.Lock()
	c.totals.submitters++
	o := crashOrders{crashSite: c.crashSite, Prefix: fmt.Sprint("job-", c.totals.submitters)}
	c.mu.Unlock()
	cmd, _, stderr := c.start("crash-submit", o)
	return func() {
		if cmd == nil {
			return
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); !killed(err) {
			c.t.Errorf("submitter ended with %v, want to kill it\n%s", err, stderr)
		}
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// crashLimit bounds the life of a worker that does not come to its step.
const crashLimit = time.Minute

// kill starts a worker, sees it killed, and looks at what has ended by then.
func (c *crash) kill(o crashOrders) {
	cmd, out, stderr := c.start("crash-worker", o)
	if cmd == nil {
		return
	}
	limit := crashLimit
	if o.Step == "" {
		limit = rand.N(200 * time.Millisecond) // the random instant
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	said, _ := io.ReadAll(out)
	timer.Stop()
	if err := cmd.Wait(); !killed(err) || string(said) != o.Step+"\n" && o.Step != "" {
		c.t.Errorf("worker to be killed at step %q (%d) ended with %v, having said %q\n%s", o.Step, o.Hit, err, said, stderr)
		return
	}
	c.mu.Lock()
	c.totals.kills++
	if o.Step == "" {
		c.totals.random++
	} else {
		c.totals.steps[o.Step]++
	}
	c.mu.Unlock()
	c.look()
}

// look notes the jobs that have ended: those whose record settles them, and
// those of which their queue has heard. From here on none may run.
func (c *crash) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var over []string
	files, err := filepath.Glob(c.records().Dir + "/*.json")
	if err != nil {
		c.t.Error(err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		digest := digestOfID(id)
		if _, known := c.over[digest]; known {
			continue
		}
		rec, err := c.records().Read(id)
		if err != nil {
			c.t.Errorf("record of %s: %v, want it whole", id, err)
		}
		if rec.Outcome != record.Failed {
			over = append(over, digest)
		}
	}
	for _, folder := range []string{"ended", "dead"} {
		for _, name := range c.list("spool/" + folder) {
			over = append(over, strings.Split(name, ".")[5])
		}
	}
	size := int64(0)
	if info, err := os.Stat(c.ledger()); err == nil {
		size = info.Size()
	}
	for _, digest := range over {
		if _, known := c.over[digest]; !known {
			c.over[digest] = size
		}
	}
}

func digestOfID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// list returns the names in a folder of the site.
func (c *crash) list(folder string) []string {
	entries, err := os.ReadDir(c.path(folder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Error(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// age makes the temporary files of records old: the records of a dead worker's
// are reaped after an hour.
func (c *crash) age() {
	long := time.Now().Add(-24 * time.Hour)
	for _, name := range c.list("records") {
		if strings.HasSuffix(name, ".tmp") {
			c.totals.temps++
			if err := os.Chtimes(c.path("records/"+name), long, long); err != nil {
				c.t.Error(err)
			}
		}
	}
}

// drain lets a last worker work the spool off.
func (c *crash) drain() {
	cmd, out, stderr := c.start("crash-worker", crashOrders{crashSite: c.crashSite})
	if cmd == nil {
		return
	}
	timer := time.AfterFunc(2*crashLimit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	steps, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		c.t.Errorf("the last worker: %v, want it to work off %v\n%s", err, c.list("spool/ids"), stderr)
	}
	// A step that this test does not know is none at which a worker was killed.
	for _, step := range strings.Fields(strings.Trim(string(steps), "[]\n")) {
		if !slices.Contains(crashSteps, step) {
			c.t.Errorf("the worker has a step %q at which no worker was killed", step)
		}
	}
}

// check holds what is left against the ledger.
func (c *crash) check() {
	c.look()
	c.checkLeft()
	records := c.checkRecords()
	c.checkLedger(records)
	c.checkNotices(records)
}
