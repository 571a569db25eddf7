package streams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A scene is a queue on a server, worker processes on it, and a ledger that they
// all write.
type scene struct {
	t       *testing.T
	prefix  string
	lease   time.Duration
	dir     string
	records string
	queue   *Queue // the producer's

	mu        sync.Mutex
	submitted []string
}

// newScene returns a scene whose producer speaks to an address.
func newScene(t *testing.T, addr string, lease time.Duration) *scene {
	t.Helper()
	s := &scene{t: t, prefix: "dispatch-test:{scene}:", lease: lease, dir: t.TempDir()}
	s.records = filepath.Join(s.dir, "records")
	s.queue = open(t, Config{Client: openClient(t, addr), Prefix: s.prefix, Lease: lease})
	return s
}

// A process is a worker process.
type process struct {
	*exec.Cmd
	t      *testing.T
	stderr *bytes.Buffer
	ended  chan struct{} // closed when it is gone
}

// start starts a worker process. prefix stands before its command line.
func (s *scene) start(c child, prefix ...string) *process {
	s.t.Helper()
	c.Prefix, c.Lease, c.Dir = s.prefix, s.lease, s.dir
	if c.Records == "" {
		c.Records = s.records
	}
	if c.Slots == 0 {
		c.Slots = 4
	}
	text, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	args := append(prefix, os.Args[0])
	p := &process{Cmd: exec.Command(args[0], args[1:]...), t: s.t, stderr: &bytes.Buffer{}, ended: make(chan struct{})}
	p.Env = append(os.Environ(), childEnv+"="+string(text))
	p.Stderr = p.stderr
	if err := p.Start(); err != nil {
		s.t.Fatalf("start a worker process: %v", err)
	}
	go func() {
		_ = p.Wait() // its state says how it ended
		close(p.ended)
	}()
	s.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if s.t.Failed() {
			log := p.stderr.String()
			s.t.Logf("worker process on %s:\n%s", c.Host, log[max(0, len(log)-4000):])
		}
	})
	return p
}

func (p *process) signal(signal syscall.Signal) {
	if err := p.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal a worker process: %v", err)
	}
}

// kill ends the process as a crash does.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop ends the process as an operator does. It must leave nothing behind.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("a worker process does not stop")
	}
	if !p.ProcessState.Success() {
		p.t.Errorf("worker process: %v", p.ProcessState)
	}
}

// patience bounds what must come by itself.
const patience = 90 * time.Second

// submit submits jobs name-0, name-1, ... with a pause between them.
func (s *scene) submit(name string, n int, pause time.Duration) {
	s.t.Helper()
	for i := range n {
		s.submitJob(worker.Job{ID: fmt.Sprintf("%s-%d", name, i)})
		time.Sleep(pause) // the load's pace
	}
}

func (s *scene) submitJob(job worker.Job) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.queue.Submit(ctx, job); err != nil {
		s.t.Errorf("Submit(%q) = %v, want no error", job.ID, err)
		return
	}
	s.mu.Lock()
	s.submitted = append(s.submitted, job.ID)
	s.mu.Unlock()
}

// lines returns the ledger so far, as words.
func (s *scene) lines() [][]string {
	text, err := os.ReadFile(filepath.Join(s.dir, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// await waits until the ledger holds n lines of what and, unless it is "", of a
// job.
func (s *scene) await(what, job string, n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d lines of %s %s", n, what, job), func() bool { return s.count(what, job) >= n })
}

func (s *scene) count(what, job string) (n int) {
	for _, words := range s.lines() {
		if words[0] == what && (job == "" || words[1] == job) {
			n++
		}
	}
	return n
}

// until waits until something is so.
func (s *scene) until(what string, so func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// release ends a held job's runs.
func (s *scene) release(job string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, job), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A tally counts what became of the jobs of a scene.
type tally struct {
	submitted, lost, settled, starts, again, fromRecord, leasesLost int
}

// settled waits until every submitted job that the queue knows is settled and
// checks that it was settled once, by its record, and did not start after that.
// Those that the queue never heard of must be no more than a number.
func (s *scene) settled(mayLose int, stores ...string) tally {
	s.t.Helper()
	if len(stores) == 0 {
		stores = []string{s.records}
	}
	var result tally
	for _, id := range s.submitted {
		state := worker.State("")
		s.until("the end of job "+id, func() bool {
			status, err := s.queue.Status(s.t.Context(), id)
			state = status.State
			if errors.Is(err, worker.ErrUnknownJob) {
				state = ""
				return true
			}
			if err != nil {
				s.t.Fatalf("Status(%q) = %v, want no error", id, err)
			}
			return state == worker.Settled || state == worker.Dead
		})
		switch state {
		case worker.Dead:
			s.t.Errorf("job %s is dead, want it settled", id)
		case "":
			result.lost++
		}
		if state != "" && !s.recorded(id, stores) {
			s.t.Errorf("job %s is settled and has no record of its success", id)
		}
	}
	if result.lost > mayLose {
		s.t.Errorf("%d jobs are unknown, want %d at most", result.lost, mayLose)
	}
	result.submitted = len(s.submitted)
	s.checkLedger(&result)
	return result
}

func (s *scene) recorded(id string, stores []string) bool {
	for _, dir := range stores {
		rec, err := (&record.Store{Dir: dir}).Read(id)
		if err == nil && rec.Outcome == record.Completed {
			return true
		}
	}
	return false
}

func (s *scene) checkLedger(result *tally) {
	s.t.Helper()
	ended := map[string]bool{}
	started := map[string]bool{}
	fromRecord := map[string]int{}
	for _, words := range s.lines() {
		job, attempt := words[1], words[1]+" "+words[2]
		switch words[0] {
		case "start":
			result.starts++
			if started[attempt] {
				result.again++
			}
			started[attempt] = true
			if ended[job] {
				s.t.Errorf("job %s ran after it was settled: %q", job, words)
			}
		case "ended":
			result.settled++
			if ended[job] && fromRecord[job] == 0 {
				s.t.Errorf("job %s was settled twice: %q", job, words)
			}
			ended[job] = true
		case "dead":
			s.t.Errorf("job %s was given up", job)
		case "lease_lost":
			result.leasesLost++
		case "job_settled_from_record":
			result.fromRecord++
			fromRecord[job]++
		}
	}
	s.t.Logf("%d submitted, %d of them lost with a server, %d settled by a worker that lived to say so; %d starts, %d of an attempt that had started; %d settled from a record, %d leases lost",
		result.submitted, result.lost, result.settled, result.starts, result.again, result.fromRecord, result.leasesLost)
}
