package worker_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/worker"
)

const limit100 = 100 << 20

// oomRun is a run that was killed for memory at its own limit, with everything
// that confirms it.
func oomRun(change ...func(*container.Result)) container.Result {
	peak, kills, code := int64(limit100), int64(1), int64(137)
	r := container.Result{
		Code: 137, Auth: exit.Verified, MemoryLimit: jobsize.Known(limit100),
		Line: &exit.Line{
			Code: &code, OOMKilled: true, BySupervisor: true, Verified: true,
			Resources: &exit.Resources{MemPeak: &peak, OOMKills: &kills},
		},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func lineOf(code int64, change ...func(*exit.Line)) *exit.Line {
	l := &exit.Line{Code: &code}
	for _, f := range change {
		f(l)
	}
	return l
}

func withPeak(peak int64) func(*container.Result) {
	return func(r *container.Result) { r.Line.Resources.MemPeak = &peak }
}

func TestClassify(t *testing.T) {
	const (
		completed = worker.Completed
		policy    = worker.Policy
		infra     = worker.Infra
	)
	unknown := worker.Outcome{Class: infra, Reason: "container-unknown-exit", Retry: true}
	oom := worker.Outcome{Class: policy, Reason: "oom-killed", CostTrusted: true}
	hostOOM := worker.Outcome{Class: infra, Reason: "container-unknown-exit", Retry: true, HostOOM: true, CostTrusted: true}
	trusted := func(o worker.Outcome) worker.Outcome { o.CostTrusted = true; return o }
	detached := worker.Outcome{Class: infra, Reason: "container-detached", Retry: true}
	infraExit := worker.Outcome{Class: infra, Reason: "container-infra-exit", Retry: true}
	cancelled := worker.Outcome{Class: policy, Reason: "operator-cancel"}
	runnerPolicy := worker.Outcome{Class: policy, Reason: "runner-policy"}

	tests := []struct {
		name  string
		run   container.Result
		retry []int
		want  worker.Outcome
	}{
		// Detached wins over everything.
		{"detached", container.Result{Detached: true}, nil, detached},
		{"detached, code 0", container.Result{Detached: true, Code: 0, Line: lineOf(0)}, nil, detached},
		{"detached and aborted", container.Result{Detached: true, Aborted: true, Cause: container.ErrCancelled, Code: 137}, nil, detached},
		{"detached, confirmed OOM", oomRun(func(r *container.Result) { r.Detached = true }), nil, detached},

		{"cancel", container.Result{Aborted: true, Cause: container.ErrCancelled, Code: 137}, nil, cancelled},
		{"cancel, wrapped", container.Result{Aborted: true, Cause: errors.Join(errors.New("x"), container.ErrCancelled), Code: 137}, nil, cancelled},
		{"cancel, code 0", container.Result{Aborted: true, Cause: container.ErrCancelled}, nil, cancelled},
		{"cancel before the start", container.Result{Aborted: true, Cause: container.ErrCancelled, NeverStarted: true, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "operator-cancel", NothingSpent: true}},
		{"timeout", container.Result{Aborted: true, Cause: container.ErrTimeout, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "job-timeout"}},
		{"shutdown", container.Result{Aborted: true, Cause: container.ErrShutdown, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "worker-abort"}},
		{"shutdown before the start", container.Result{Aborted: true, Cause: container.ErrShutdown, NeverStarted: true, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "worker-abort", NothingSpent: true, HandBack: true}},
		{"aborted for another cause", container.Result{Aborted: true, Cause: worker.ErrLeaseLost, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "worker-abort"}},
		{"aborted for no cause", container.Result{Aborted: true, Code: 137}, nil, worker.Outcome{Class: policy, Reason: "worker-abort"}},
		{"a cause but not aborted", container.Result{Cause: container.ErrCancelled, Code: 1}, nil, infraExit},
		{"aborted, confirmed OOM", oomRun(func(r *container.Result) { r.Aborted, r.Cause = true, container.ErrCancelled }), nil, trusted(cancelled)},
		{"aborted, OOM below the limit", oomRun(withPeak(1), func(r *container.Result) { r.Aborted, r.Cause = true, container.ErrCancelled }), nil, trusted(cancelled)},

		{"OOM at the limit", oomRun(), nil, oom},
		{"OOM at exactly 90 %", oomRun(withPeak(limit100 / 10 * 9)), nil, oom},
		{"OOM above the limit", oomRun(withPeak(limit100 + 4096)), nil, oom},
		{"OOM, and 137 is to be retried", oomRun(), []int{137}, oom},
		{"OOM a byte below 90 %", oomRun(withPeak(limit100/10*9 - 1)), nil, hostOOM},
		{"OOM, real exit 0", oomRun(func(r *container.Result) { r.Code = 0 }), nil, worker.Outcome{Class: completed}},
		{"OOM, real exit 1", oomRun(func(r *container.Result) { r.Code = 1 }), nil, infraExit},
		{"OOM, real exit 2", oomRun(func(r *container.Result) { r.Code = 2 }), nil, runnerPolicy},
		{"OOM, real exit 136", oomRun(func(r *container.Result) { r.Code = 136 }), nil, unknown},
		{"OOM, unverified", oomRun(func(r *container.Result) { r.Auth = exit.Unverified }), nil, trusted(unknown)},
		{"OOM, unchecked", oomRun(func(r *container.Result) { r.Auth, r.Line.Verified = exit.Unchecked, false }), nil, trusted(unknown)},
		{"OOM, verified run but another line", oomRun(func(r *container.Result) { r.Line.Verified = false }), nil, trusted(unknown)},
		{"OOM, no report", oomRun(func(r *container.Result) { r.Line.OOMKilled = false }), nil, trusted(unknown)},
		{"OOM, no line", oomRun(func(r *container.Result) { r.Line = nil }), nil, unknown},
		{"OOM, no resources", oomRun(func(r *container.Result) { r.Line.Resources = nil }), nil, trusted(unknown)},
		{"OOM, no peak", oomRun(func(r *container.Result) { r.Line.Resources.MemPeak = nil }), nil, trusted(unknown)},
		{"OOM, limit unknown", oomRun(func(r *container.Result) { r.MemoryLimit = jobsize.Limit{} }), nil, trusted(unknown)},
		{"OOM, limit off", oomRun(func(r *container.Result) { r.MemoryLimit = jobsize.Off() }), nil, trusted(unknown)},
		{"OOM, limit 0", oomRun(func(r *container.Result) { r.MemoryLimit = jobsize.Known(0) }), nil, trusted(unknown)},

		{"0", container.Result{Code: 0}, nil, worker.Outcome{Class: completed}},
		{"0, trusted", container.Result{Code: 0, Line: lineOf(0)}, nil, trusted(worker.Outcome{Class: completed})},
		{"0, awaiting input", container.Result{Line: lineOf(0, func(l *exit.Line) { l.CompletedReason = "awaiting-input" })}, nil, trusted(worker.Outcome{Class: completed, Reason: "awaiting-input"})},
		{"0, awaiting approval", container.Result{Line: lineOf(0, func(l *exit.Line) { l.CompletedReason = "awaiting-approval" })}, nil, trusted(worker.Outcome{Class: completed, Reason: "awaiting-approval"})},
		{"0, the line claims 2 and a reason", container.Result{Line: lineOf(2, func(l *exit.Line) { l.Reason = "cost-cap" })}, nil, worker.Outcome{Class: completed}},
		{"0 is never to be retried", container.Result{}, []int{0}, worker.Outcome{Class: completed}},

		{"2", container.Result{Code: 2}, nil, runnerPolicy},
		{"2 with a reason", container.Result{Code: 2, Line: lineOf(2, func(l *exit.Line) { l.Reason = "model-not-allowed" })}, nil, trusted(worker.Outcome{Class: policy, Reason: "model-not-allowed"})},
		{"2 with a reason and its why", container.Result{Code: 2, Line: lineOf(2, func(l *exit.Line) { l.Reason, l.Why = "cost-cap", "over-cap" })}, nil, trusted(worker.Outcome{Class: policy, Reason: "cost-cap", Why: "over-cap"})},
		{"2, the line claims 0 and a wait", container.Result{Code: 2, Line: lineOf(0, func(l *exit.Line) { l.CompletedReason = "awaiting-input" })}, nil, runnerPolicy},
		{"2, to be retried", container.Result{Code: 2, Line: lineOf(2, func(l *exit.Line) { l.Reason = "cost-cap" })}, []int{75, 2}, trusted(infraExit)},

		{"1", container.Result{Code: 1}, nil, infraExit},
		{"1, the line claims 0", container.Result{Code: 1, Line: lineOf(0, func(l *exit.Line) { l.CompletedReason = "awaiting-input" })}, nil, infraExit},
		{"1, the line claims 2 and a reason", container.Result{Code: 1, Line: lineOf(2, func(l *exit.Line) { l.Reason = "cost-cap" })}, nil, infraExit},
		{"1, a line without a code", container.Result{Code: 1, Line: &exit.Line{}}, nil, infraExit},

		{"never started", container.Result{NeverStarted: true, Code: 125}, nil, worker.Outcome{Class: infra, Reason: "container-never-started", Retry: true, NothingSpent: true}},
		{"never started, 127", container.Result{NeverStarted: true, Code: 127}, []int{127}, worker.Outcome{Class: infra, Reason: "container-never-started", Retry: true, NothingSpent: true}},
		{"127 of the job's own", container.Result{Code: 127}, nil, unknown},
		{"125 of the job's own", container.Result{Code: 125}, nil, unknown},

		{"137", container.Result{Code: 137}, nil, unknown},
		{"143", container.Result{Code: 143}, nil, unknown},
		{"3", container.Result{Code: 3}, nil, unknown},
		{"255", container.Result{Code: 255}, nil, unknown},
		{"3, the line claims 0", container.Result{Code: 3, Line: lineOf(0)}, nil, unknown},
		{"3, the line agrees", container.Result{Code: 3, Line: lineOf(3)}, nil, trusted(unknown)},
		{"75, to be retried", container.Result{Code: 75}, []int{75}, infraExit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := worker.Classify(tt.run, tt.retry...)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(worker.Outcome{}, "Rule")); diff != "" {
				t.Errorf("Classify: %s (-want +got)", diff)
			}
			if got.Rule == "" {
				t.Error("Classify names no rule")
			}
		})
	}
}

// The class never depends on what a line says, except that a confirmed memory
// kill is policy.
func TestClassifyByRealCodeAlone(t *testing.T) {
	lines := []*exit.Line{nil, lineOf(0), lineOf(1), lineOf(2, func(l *exit.Line) { l.Reason = "cost-cap" }), lineOf(137)}
	for code := range 256 {
		want := worker.Classify(container.Result{Code: code}).Class
		for _, l := range lines {
			for _, auth := range []exit.Auth{exit.Unchecked, exit.Verified, exit.Unverified} {
				got := worker.Classify(container.Result{Code: code, Line: l, Auth: auth}).Class
				if got != want {
					t.Errorf("Classify(code %d, line %v, %q) is %q, want %q", code, l, auth, got, want)
				}
			}
		}
	}
}
