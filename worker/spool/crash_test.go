package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// What a child is told.
const (
	childRole   = "SPOOL_TEST_ROLE" // script, worker or submit
	childDir    = "SPOOL_TEST_DIR"
	childPrefix = "SPOOL_TEST_PREFIX" // of the ids it submits
	childKill   = "SPOOL_TEST_KILL"   // the step at which it dies, counted from 1; 0 for none
)

// TestMain lets the test binary be the processes that are killed.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := runChild(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A child is a process that works on a spool and may die at any step.
type child struct {
	*Spool
	prefix   string
	ledger   *os.File
	requeued map[string]bool
}

func runChild(role string) error {
	dir := os.Getenv(childDir)
	kill, err := strconv.Atoi(os.Getenv(childKill))
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(filepath.Join(dir, "..", "ledger"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	hits := 0
	s, err := open(Config{Dir: dir}, func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if hits++; hits == kill {
			fmt.Println(name)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		return err
	}
	c := &child{s, os.Getenv(childPrefix), ledger, map[string]bool{}}
	switch role {
	case "script":
		err = c.script()
	case "worker":
		err = c.work()
	case "submit":
		err = c.Submit(context.Background(), worker.Job{ID: c.prefix})
	}
	if err != nil {
		return err
	}
	fmt.Println("steps", hits)
	return s.Close()
}

// write adds one line to the ledger, in one write.
func (c *child) write(words ...any) error {
	_, err := c.ledger.WriteString(strings.TrimSuffix(fmt.Sprintln(words...), "\n") + "\n")
	return err
}

func (c *child) submit(i int, delay time.Duration) error {
	id := fmt.Sprintf("%s-%d", c.prefix, i)
	err := c.Submit(context.Background(), worker.Job{ID: id, Data: []byte(`{"a":1}`), Delay: delay})
	return errors.Join(err, c.write("submitted", id))
}

// script goes through every transition once or more, always in the same order.
func (c *child) script() error {
	ctx := context.Background()
	c.sweep()
	for i := range 8 {
		delay := time.Duration(0)
		if i == 7 {
			delay = time.Hour
		}
		if err := c.submit(i, delay); err != nil {
			return err
		}
	}
	if _, err := c.Cancel(ctx, c.prefix+"-0"); err != nil {
		return err
	}
	if err := c.write("ended", c.prefix+"-0"); err != nil {
		return err
	}
	for {
		d, err := nextOrNone(c.Spool)
		if d == nil {
			return err
		}
		if err := c.settle(ctx, d); err != nil {
			return err
		}
	}
}

// nextOrNone takes a job that is ready, nil when there is none.
func nextOrNone(s *Spool) (worker.Delivery, error) {
	ready, err := list(s.path(readyFolder))
	if err != nil || len(ready) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Next(ctx)
}

func (c *child) settle(ctx context.Context, d worker.Delivery) error {
	j := d.Job()
	if err := c.write("runs", j.ID, j.Attempts, j.Stalls); err != nil {
		return err
	}
	first := j.Attempts == 0 && j.Stalls == 0
	switch last := j.ID[len(j.ID)-1]; {
	case last == '1' && first:
		return d.Retry(ctx, 0, nil)
	case last == '2' && j.Stalls == 0 && j.Attempts == 0:
		return d.Retry(ctx, time.Hour, nil)
	case last == '3':
		return d.Dead(ctx, "broken", nil)
	case last == '4':
		if _, err := c.Cancel(ctx, j.ID); err != nil {
			return err
		}
		if _, err := d.Extend(ctx); err != nil {
			return err
		}
		if err := d.Done(ctx, &record.Record{Reason: "operator-cancel"}); err != nil {
			return err
		}
		return c.write("ended", j.ID)
	case last == '5' && !c.requeued[j.ID]:
		c.requeued[j.ID] = true
		if err := d.Dead(ctx, "once", nil); err != nil {
			return err
		}
		return c.Requeue(ctx, j.ID)
	case last == '6' && first:
		return d.Defer(ctx, time.Now().Add(time.Hour), "")
	}
	if err := d.Done(ctx, nil); err != nil {
		return err
	}
	return c.write("ended", j.ID)
}

// work submits and works until it is killed.
func (c *child) work() error {
	ctx := context.Background()
	for i := 0; ; i++ {
		// Ids end in 1, 2, 3 or 7: their deliveries differ in attempts or stalls.
		if err := c.submit(i*10+[]int{1, 7, 3, 7}[i%4], 0); err != nil {
			return err
		}
		d, err := c.Next(ctx)
		if err == nil {
			err = c.settle(ctx, d)
		}
		if err != nil {
			return err
		}
	}
}

// A crashSite is a spool and the ledger beside it.
type crashSite struct{ dir, ledger string }

func newCrashSite(t *testing.T) crashSite {
	root := t.TempDir()
	return crashSite{filepath.Join(root, "spool"), filepath.Join(root, "ledger")}
}

func (c crashSite) command(t *testing.T, role, prefix string, kill int) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a child that hangs
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+c.dir, childPrefix+"="+prefix, childKill+"="+strconv.Itoa(kill))
	return cmd
}

// run runs a child that dies at a step, and returns the step's name. killed is
// false when it came to its end before.
func (c crashSite) run(t *testing.T, prefix string, kill int) (output string, killed bool) {
	t.Helper()
	cmd := c.command(t, "script", prefix, kill)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	output = strings.TrimSpace(string(out))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && output != "" {
		return output, true
	}
	if err != nil {
		t.Fatalf("child killed at step %d (%s): %v\n%s", kill, output, err, stderr.String())
	}
	return output, false
}

// verify holds the ledger against the spool, after a sweep.
func (c crashSite) verify(t *testing.T) {
	t.Helper()
	s, err := Open(Config{Dir: c.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.sweep()
	live, ended := c.inventory(t, s)
	c.checkLedger(t, live, ended)

	// What is left works to its end.
	for {
		d, err := nextOrNone(s)
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			break
		}
		if err := d.Done(t.Context(), nil); err != nil {
			t.Errorf("Done of %s = %v, want no error", d.Job().ID, err)
		}
	}
	left, _ := c.inventory(t, s)
	for digest, folder := range left {
		if folder == readyFolder {
			t.Errorf("job %s is ready and nobody gets it", digest)
		}
	}
}

// inventory returns the folder of each job that is known by its digest, and the
// digests of those that ended. Nothing else may lie in the spool.
func (c crashSite) inventory(t *testing.T, s *Spool) (live map[string]string, ended map[string]bool) {
	t.Helper()
	live, ended = map[string]string{}, map[string]bool{}
	for _, folder := range []string{readyFolder, delayedFolder, deadFolder, endedFolder} {
		for _, file := range mustList(t, s.path(folder)) {
			n, ok := parseName(file)
			switch {
			case !ok:
				t.Errorf("%s/%s is not the name of a job", folder, file)
			case folder == endedFolder:
				ended[n.digest] = true
			case live[n.digest] != "":
				t.Errorf("job %s is in %s and in %s", n.digest, live[n.digest], folder)
			default:
				live[n.digest] = folder
			}
		}
	}
	for digest := range ended {
		if live[digest] != "" {
			t.Errorf("job %s ended and is in %s", digest, live[digest])
		}
	}
	ids := mustList(t, s.path(idsFolder))
	for _, id := range ids {
		if live[id] == "" {
			t.Errorf("ids/%s stands for no job", id)
		}
	}
	if len(ids) != len(live) {
		t.Errorf("%d ids for %d jobs, want one each", len(ids), len(live))
	}
	for folder, want := range map[string][]string{
		claimsFolder: {s.instance.ID}, instancesFolder: {s.instance.ID}, asideFolder: nil,
		filepath.Join(claimsFolder, s.instance.ID): nil,
	} {
		if got := mustList(t, s.path(folder)); !slices.Equal(got, want) {
			t.Errorf("%s holds %q, want %q", folder, got, want)
		}
	}
	return live, ended
}

func mustList(t *testing.T, folder string) []string {
	t.Helper()
	files, err := list(folder)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkLedger checks that what a process was told is so.
func (c crashSite) checkLedger(t *testing.T, live map[string]string, ended map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(c.ledger)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]bool{}
	ran := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		id, digest := words[1], digestOf(words[1])
		switch words[0] {
		case "submitted":
			if live[digest] == "" && !ended[digest] {
				t.Errorf("job %s was accepted and is lost", id)
			}
		case "ended":
			over[id] = true
			if live[digest] != "" {
				t.Errorf("job %s ended and is in %s", id, live[digest])
			}
		case "runs":
			if over[id] {
				t.Errorf("job %s ran after it had ended", id)
			}
			requeued := strings.HasSuffix(id, "5")
			if ran[line] && !requeued {
				t.Errorf("two deliveries of one attempt: %s", line)
			}
			ran[line] = true
		}
	}
}

// TestKilledAtEveryStep kills a process at each of its steps, and then another
// one that finds what the first left, at a step of its own.
func TestKilledAtEveryStep(t *testing.T) {
	output, _ := newCrashSite(t).run(t, "whole", 0)
	steps, err := strconv.Atoi(strings.TrimPrefix(output, "steps "))
	if err != nil || steps < 100 {
		t.Fatalf("a script that is not killed says %q, want at least 100 steps", output)
	}
	stride := 1
	if testing.Short() {
		stride = 7
	}
	seen := map[string]int{}
	kills := 0
	for i := 1; i <= steps; i += stride {
		site := newCrashSite(t)
		step, killed := site.run(t, "a", i)
		second, killedToo := site.run(t, "b", 4+i%8) // in its sweep, or just after
		for _, name := range []string{step, second} {
			seen[name]++
		}
		if killed {
			kills++
		}
		if killedToo {
			kills++
		}
		site.verify(t)
		if t.Failed() {
			t.Fatalf("the processes had been killed at %q (step %d) and %q", step, i, second)
		}
	}
	t.Logf("%d steps, %d kills at %d names: %v", steps, kills, len(seen), seen)
	for _, name := range []string{"submit:linked", "move:renamed", "claim:done", "end:marked", "end:freed", "end:cut", "sweep:claim", "instance:made", "instance:locked"} {
		if seen[name] == 0 && stride == 1 {
			t.Errorf("no process was killed at %s", name)
		}
	}
}

// TestKilledAtRandom lets processes work on one spool and kills each after a
// random time, and again.
func TestKilledAtRandom(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	const workers = 3
	site := newCrashSite(t)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for round := range rounds {
				cmd := site.command(t, "worker", fmt.Sprintf("%d-%d", w, round), 0)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				// This is the random instant, and waits for nothing.
				time.Sleep(20*time.Millisecond + rand.N(300*time.Millisecond))
				_ = cmd.Process.Kill()
				if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
					t.Errorf("child = %v, want to kill it\n%s", err, stderr.String())
				}
			}
		})
	}
	all.Wait()
	site.verify(t)
	text, _ := os.ReadFile(site.ledger)
	t.Logf("%d kills; %d submits, %d deliveries, %d ends", rounds*workers,
		bytes.Count(text, []byte("submitted")), bytes.Count(text, []byte("runs")), bytes.Count(text, []byte("ended")))
}
