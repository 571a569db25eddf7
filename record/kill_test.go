package record

import (
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"syscall"
	"testing"
)

const killAt = "RECORD_TEST_KILL_AT"

func pid() string { return strconv.Itoa(os.Getpid()) }

// TestMain is also the writer that kills itself at a step.
func TestMain(m *testing.M) {
	step := os.Getenv(killAt)
	if step == "" {
		os.Exit(m.Run())
	}
	s := &Store{Dir: os.Args[1]}
	s.faults.step = func(at string) {
		if at == step {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s.Write(Build(sampleRun("j", 2)))
}

func TestKilledWriter(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, second := Build(sampleRun("j", 1)), Build(sampleRun("j", 2))
	for _, step := range []string{"create", "write", "sync", "rename", "sync folder"} {
		for range 10 {
			s := &Store{Dir: t.TempDir()}
			write(t, s, first)
			child := exec.Command(exe, s.Dir)
			child.Env = append(os.Environ(), killAt+"="+step)
			child.Run()
			status := child.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != syscall.SIGKILL {
				t.Fatalf("%s: the writer ended with %v, want SIGKILL", step, child.ProcessState)
			}
			want := first
			if step == "sync folder" {
				want = second
			}
			got, err := s.Read("j")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: Read = %+v, %v, want attempt %d whole", step, got, err, *want.Attempt)
			}
		}
	}
}
