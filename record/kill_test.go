package record

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"syscall"
	"testing"

	"github.com/edgehero/dispatch/exit"
)

// What a child process of the tests is told by its environment.
const (
	childOf   = "RECORD_TEST_CHILD" // the folder to write to
	killAt    = "RECORD_TEST_KILL_AT"
	inPlace   = "RECORD_TEST_IN_PLACE"
	maxWrites = "RECORD_TEST_WRITES"
)

func pid() string { return strconv.Itoa(os.Getpid()) }

// TestMain is also the writer that is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(childOf)
	if dir == "" {
		os.Exit(m.Run())
	}
	s := &Store{Dir: dir}
	s.faults.step = func(step string) error {
		if step == os.Getenv(killAt) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if step == "create" && os.Getenv(inPlace) != "" {
			return syscall.EROFS
		}
		return nil
	}
	writes, _ := strconv.Atoi(os.Getenv(maxWrites))
	for i := range writes {
		if err := s.Write(killedRecord(2 + i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// killedRecord is a record of several pages, so that a write of it is many.
func killedRecord(attempt int) Record {
	run := sampleRun("j", attempt)
	run.Bundle = &Bundle{ID: exit.Word(fmt.Sprint("b", attempt))}
	for i := range 64 {
		run.Bundle.Variables = append(run.Bundle.Variables, fmt.Sprintf("V%0200d", i+64*attempt))
	}
	return Build(run)
}

func child(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(append(os.Environ(), childOf+"="+dir), env...)
	c.Stderr = os.Stderr
	return c
}

func checkKilled(t *testing.T, c *exec.Cmd) {
	t.Helper()
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the writer ended with %v, want SIGKILL", c.ProcessState)
	}
}

// A death at any step leaves the earlier record or the new one. In place, and
// only there, it can leave one that is unparseable.
func TestKilledAtEveryStep(t *testing.T) {
	first, second := killedRecord(1), killedRecord(2)
	for _, c := range []struct {
		step    string
		inPlace string
		want    *Record // nil: unparseable
	}{
		{"create", "", &first}, {"write", "", &first}, {"sync", "", &first}, {"rename", "", &first}, {"sync folder", "", &second},
		{"mark", "1", &first}, {"sync mark", "1", nil}, {"write in place", "1", nil}, {"sync in place", "1", nil}, {"unmark", "1", nil},
		{"sync unmarked", "1", &second}, {"sync folder", "1", &second},
	} {
		for range 2 {
			s := &Store{Dir: t.TempDir()}
			write(t, s, first)
			writer := child(t, s.Dir, killAt+"="+c.step, inPlace+"="+c.inPlace, maxWrites+"=1")
			writer.Run()
			checkKilled(t, writer)
			got, err := s.Read("j")
			if c.want == nil {
				var bad *UnparseableError
				if !errors.As(err, &bad) {
					t.Errorf("%s in place: Read = attempt %v, %v, want unparseable", c.step, got.Attempt, err)
				}
			} else if err != nil || !reflect.DeepEqual(got, *c.want) {
				t.Errorf("%s: Read = %+v, %v, want attempt %d whole", c.step, got, err, *c.want.Attempt)
			}
			write(t, s, second) // the next writer is not in the way of what was left
			checkRead(t, s, second)
		}
	}
}

// A writer is killed while it writes one record after the other, wherever it is.
func TestKilledAtRandom(t *testing.T) {
	for _, place := range []string{"", "1"} {
		unparseable := 0
		for range 12 {
			s := &Store{Dir: t.TempDir()}
			write(t, s, killedRecord(1))
			writer := child(t, s.Dir, inPlace+"="+place, maxWrites+"=100000")
			out, err := writer.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := writer.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for range 1 + rand.IntN(8) {
				lines.Scan()
			}
			for range rand.IntN(100_000) { // some microseconds into the next write
			}
			writer.Process.Kill()
			writer.Wait()
			checkKilled(t, writer)
			got, err := s.Read("j")
			var bad *UnparseableError
			if errors.As(err, &bad) && place != "" {
				unparseable++
			} else if err != nil || got.Attempt == nil || !reflect.DeepEqual(got, killedRecord(int(*got.Attempt))) {
				t.Errorf("in place %q: Read = %+v, %v, want one that was written, whole", place, got, err)
			}
		}
		t.Logf("in place %q: %d of 12 unparseable", place, unparseable)
	}
}

func TestTwoProcessesWriteOneRecord(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	write(t, s, killedRecord(1))
	const n = 100
	var writers []*exec.Cmd
	for range 2 {
		w := child(t, s.Dir, maxWrites+"="+strconv.Itoa(n))
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	done := make(chan error, len(writers))
	for _, w := range writers {
		go func() { done <- w.Wait() }()
	}
	for left := len(writers); left > 0; {
		select {
		case err := <-done:
			if left--; err != nil {
				t.Errorf("a writer ended with %v", err)
			}
		default:
		}
		got, err := s.Read("j")
		if err != nil || !reflect.DeepEqual(got, killedRecord(int(*got.Attempt))) {
			t.Fatalf("Read = %+v, %v, want one that was written, whole", got, err)
		}
	}
	checkRead(t, s, killedRecord(n+1))
	checkNoTemp(t, s.Dir)
}
