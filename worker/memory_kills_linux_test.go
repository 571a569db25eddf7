package worker_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// A memoryKillCase is one way for a job to end by a kill, or with one in sight.
type memoryKillCase struct {
	houseJob
	above string // memory.max of the cgroup above the job's
	// kills is true where the record has to hold memory kills.
	kills bool
}

var (
	oomKilled = houseEnd{record.Policy, "oom-killed", "", 137, 1, exit.Verified, worker.Settled}
	grow      = strings.Join(growing, " ")
)

const noLimit = "max"

// memoryKillCases are the truth table of memory kills. Of all of these the first
// alone is oom-killed: the same size would end it the same way. spec returns a
// job whose command runs under a supervisor.
func memoryKillCases(spec func(command ...string) container.Spec) []memoryKillCase {
	shell := func(script string) container.Spec { return spec("sh", "-c", script) }
	const stay = "echo here; sleep 1000; exit 0"
	stopped := houseEnd{Outcome: record.Policy, Code: 137, Attempts: 1, State: worker.Settled, Auth: exit.Verified}
	cancelled, timedOut := stopped, stopped
	cancelled.Reason, timedOut.Reason = "operator-cancel", "job-timeout"
	return []memoryKillCase{
		{houseJob: houseJob{name: "the command at its own limit", spec: spec(growing...), want: oomKilled}, above: noLimit, kills: true},
		{houseJob: houseJob{name: "a child alone", spec: shell(grow + "; exit 0"), want: goesWell}, above: noLimit, kills: true},
		{houseJob: houseJob{
			name: "a child, whose code the command passes on", spec: shell(grow + "; exit $?"),
			want: fails("container-unknown-exit", 137, exit.Verified),
		}, above: noLimit, kills: true},
		{houseJob: houseJob{
			name: "the command, from outside", spec: shell(stay), during: killCommand,
			want: fails("container-unknown-exit", 137, exit.Verified),
		}, above: noLimit},
		{houseJob: houseJob{
			name: "the supervisor, from outside", spec: shell(stay), during: killSupervisor,
			want: fails("container-unknown-exit", 137, exit.Unverified),
		}, above: noLimit},
		{houseJob: houseJob{
			name: "at a limit above, well below its own", spec: spec(growing...), size: jobsize.Request{Memory: "512m"},
			want: fails("container-unknown-exit", 137, exit.Verified),
		}, above: "67108864", kills: true},
		{houseJob: houseJob{
			name: "cancelled after a child's kill", spec: shell(grow + "; " + stay), during: cancel, want: cancelled,
		}, above: noLimit, kills: true},
		{houseJob: houseJob{
			name: "at its time limit after a child's kill", spec: shell(grow + "; " + stay), timeLimit: 10 * time.Second, want: timedOut,
		}, above: noLimit, kills: true},
	}
}

// cancel asks for a job's cancel, as an operator does.
func cancel(h *house, id string) {
	if answer, err := h.queue.Cancel(h.t.Context(), id); err != nil || answer != worker.CancelRequested {
		h.t.Errorf("Cancel(%q) = %q, %v, want it requested", id, answer, err)
	}
}

// killSupervisor ends what the runtime started.
func killSupervisor(h *house, id string) {
	if err := syscall.Kill(firstPID(h, id), syscall.SIGKILL); err != nil {
		h.t.Errorf("kill the supervisor: %v", err)
	}
}

// killCommand ends what the supervisor started.
func killCommand(h *house, id string) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", firstPID(h, id)))
	if err != nil {
		h.t.Error(err)
	}
	killed := 0
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range bytes.FieldsSeq(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	if killed != 1 {
		h.t.Errorf("killed %d children of the supervisor, want the command", killed)
	}
}

// firstPID returns the first process of a job that runs.
func firstPID(h *house, id string) int {
	states, err := h.runtime.List(h.t.Context(), container.Labels{Job: id, Instance: h.instance.ID()})
	if err != nil || len(states) != 1 || states[0].PID <= 1 {
		h.t.Errorf("List = %+v, %v, want one job that runs", states, err)
		return 1 << 30 // nobody
	}
	return states[0].PID
}

// testMemoryKills produces each case for real, in leaves or containers beneath
// one cgroup.
func testMemoryKills(t *testing.T, parent string, newHouse func(*testing.T) *house, spec func(command ...string) container.Spec) {
	byLimit := map[string][]houseJob{}
	for _, c := range memoryKillCases(spec) {
		c.check = c.checkNumbers
		byLimit[c.above] = append(byLimit[c.above], c.houseJob)
	}
	for above, jobs := range byLimit {
		t.Run("below a limit of "+above, func(t *testing.T) {
			if err := os.WriteFile(parent+"/memory.max", []byte(above), 0); err != nil {
				t.Fatal(err)
			}
			newHouse(t).run(jobs...)
		})
	}
}

// checkNumbers checks what the record holds of memory kills, and the log.
func (c memoryKillCase) checkNumbers(t *testing.T, j *houseJob) {
	if got := strings.Contains(j.logged, "msg=oom_report_below_limit"); got != (c.above != noLimit) {
		t.Errorf("oom_report_below_limit was logged: %v, for a limit above of %s", got, c.above)
	}
	r := j.rec.Resources
	if c.timeLimit > 0 && r == nil {
		return
	}
	if c.want.Auth != exit.Verified {
		if r != nil {
			t.Errorf("Resources = %+v, want none without a line", r)
		}
		return
	}
	if r == nil || r.OOMKills == nil || r.MemPeak == nil {
		t.Fatalf("Resources = %+v, want what the cgroup measured", r)
	}
	if got := *r.OOMKills > 0; got != c.kills && c.timeLimit == 0 {
		t.Errorf("OOMKills = %d, want some: %v", *r.OOMKills, c.kills)
	}
}

func TestLiveProcessMemoryKills(t *testing.T) {
	parent := lab.CgroupParent(t)
	testMemoryKills(t, parent,
		func(t *testing.T) *house { return newProcessHouse(t, parent) },
		func(command ...string) container.Spec { return container.Spec{Args: command} })
}

func TestLiveDockerMemoryKills(t *testing.T) {
	parent := lab.CgroupParent(t)
	lab.Docker(t)
	image, self := lab.Image(t, "docker"), staticSelf(t)
	testMemoryKills(t, parent,
		func(t *testing.T) *house { return newDockerHouse(t) },
		func(command ...string) container.Spec {
			return container.Spec{
				Image: image, Supervisor: []string{self, "supervise"}, Args: command, CgroupParent: filepath.Base(parent),
			}
		})
}
