package record

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// A Run is what is known of a run as its record is built. Every field is
// optional; [Build] leaves out what is not as the format says.
type Run struct {
	JobID   string
	Attempt int // 1 for the first
	// Kind is local, github, gitlab, forgejo or azure. A local job works on
	// Folder, of which only the base name is recorded, and any other on Number
	// of Repo. MergeRequest says that the number is a GitLab merge request's.
	Kind         string
	Folder       string
	Repo         string
	Number       int64
	MergeRequest bool
	Flow         string
	Project      string
	Host         string
	Backend      string // the venue that the job resolved to

	StartedAt, EndedAt time.Time
	Outcome            Outcome
	Reason             exit.Reason
	// Reasons are the embedder's own, beside those of [Meaning].
	Reasons  []exit.Reason
	Why      exit.Word
	ExitCode *int64 // the container's real one
	// Line is the decisive exit line. What only a verified line may give is
	// taken from a verified one alone.
	Line *exit.Line

	Provider, Model string
	ModelRole       string
	ModelWhy        string
	Canary          *Canary
	BudgetReserved  *bool
	Dollars         *Dollars
	Approval        *Approval
	Plan            *Plan
	PackageCanary   *PackageCanary

	Size       jobsize.Size // the zero Size is not known
	HostBudget *HostBudget  // only on a refusal of a job that never fits
	Capacity   *Capacity    // nil on a refusal before a slot
	// Job is the queue's side of the job; its ID is JobID.
	Job Job
	// Previous is the record that this one will replace.
	Previous *Record

	Progress       json.RawMessage // as its source wrote it
	RecoveryOf     string
	Recovered      *Recovered
	RecoverSkipped string
	Checkpoints    *Checkpoints
	SteeringArmed  bool
	Steered        *Steered // only where SteeringArmed
	SteerSkipped   string   // only where SteeringArmed
	Bundle         *Bundle
	BundleSkipped  string
	LiveSkipped    string
	OpenShell      *OpenShell
	SecretsArmed   bool
	SecretsProfile string // only where SecretsArmed
	MaxTurns       int64
}

// Build returns the record of a run: each field checked and rebuilt by the rules
// by which [Parse] reads it, so that what is written reads back equal.
func Build(run Run) Record {
	draft := run.draft()
	text, err := draft.line()
	if err != nil { // a number that is not finite: the only thing JSON can't say
		draft.Tokens, draft.Usage = nil, nil
		if text, err = draft.line(); err != nil {
			return Record{JobID: run.JobID, V: Version}
		}
	}
	r, _ := Parse(withProgress(text, run.Progress))
	r.JobID = run.JobID // JSON can't hold invalid UTF-8; Write refuses it
	r.Outcome = run.outcome()
	r.Reason = run.reason(r.Reason)
	return r
}

// withProgress adds the source's own progress, so that one rule reads it.
func withProgress(line []byte, progress json.RawMessage) []byte {
	if !json.Valid(progress) {
		return line
	}
	end := slices.Index(line, '{') + 1
	return slices.Concat(line[:end], []byte(`"progress":`), progress, []byte(","), line[end:])
}

func (run *Run) outcome() Outcome {
	if run.Outcome == Completed || run.Outcome == Policy {
		return run.Outcome
	}
	return Failed
}

// reason returns a token of the closed set. No failure is without one, and no
// library's message gets in.
func (run *Run) reason(token exit.Reason) exit.Reason {
	if _, known := Meaning(token); known || token != "" && slices.Contains(run.Reasons, token) {
		return token
	}
	if run.outcome() == Failed {
		return WorkerError
	}
	return ""
}

// draft puts everything in its place, unchecked.
func (run *Run) draft() Record {
	job := run.Job
	job.ID = run.JobID
	r := Record{
		JobID: run.JobID, Kind: exit.Word(run.Kind), Target: run.target(), Flow: exit.Word(run.Flow),
		StartedAt: At(run.StartedAt), EndedAt: At(run.EndedAt),
		Outcome: run.outcome(), Reason: run.Reason, ExitCode: run.ExitCode, Why: run.Why,
		Provider: exit.Word(run.Provider), Model: exit.Word(run.Model),
		ModelRole: exit.Word(run.ModelRole), ModelWhy: exit.Word(run.ModelWhy), Canary: run.Canary,
		BudgetReserved: run.BudgetReserved, Dollars: run.Dollars,
		Host: exit.Word(run.Host), Project: exit.Word(run.Project), Backend: exit.Word(run.Backend),
		Approval: run.Approval, Plan: run.Plan, PackageCanary: run.PackageCanary,
		HostBudget: run.HostBudget, Capacity: run.Capacity,
		QueuedAt: QueuedAt(job), JobCreatedAt: At(job.Created), Earlier: EarlierFrom(run.Previous),
		StalledRepick: job.Stalls > 0 && job.Attempts == 0,
		RecoveryOf:    exit.Word(run.RecoveryOf), Recovered: run.Recovered, RecoverSkipped: exit.Word(run.RecoverSkipped),
		Checkpoints: run.Checkpoints, Bundle: run.Bundle, BundleSkipped: exit.Word(run.BundleSkipped),
		LiveSkipped: exit.Word(run.LiveSkipped), OpenShell: run.OpenShell, V: Version,
	}
	if run.Attempt > 0 {
		r.Attempt = ptr(int64(run.Attempt))
	}
	if run.MaxTurns > 0 {
		r.MaxTurns = ptr(run.MaxTurns)
	}
	if run.Size != (jobsize.Size{}) {
		r.Size = &Size{int64(run.Size.Mem), int64(run.Size.CPU), run.Size.Source}
	}
	if run.SteeringArmed {
		r.Steered, r.SteerSkipped = run.Steered, exit.Word(run.SteerSkipped)
	}
	if run.SecretsArmed {
		r.SecretsProfile = exit.Word(run.SecretsProfile)
	}
	r.takeLine(run.Line.Trusted())
	return r
}

// takeLine puts in what the container said.
func (r *Record) takeLine(l *exit.Line) {
	if l == nil {
		return
	}
	r.Turns, r.Tokens, r.Usage, r.Session, r.Resources = l.Turns, l.Tokens, l.Usage, l.Session, l.Resources
	r.ModelRoles, r.ProviderFailure = l.ModelRoles, l.ProviderFailure
	if l.Loaded == nil {
		return
	}
	if v, err := jsonval.Parse(l.Loaded.Raw); err == nil {
		r.Loaded = readLoaded(v)
	} else if l.Loaded.Cut {
		r.Loaded = &Loaded{Packages: []LoadedPackage{}, Cut: true}
	}
}

// target names what the job works on. Of a folder it takes the base name: the
// path can hold an account's name.
func (run *Run) target() exit.Word {
	if run.Kind == "local" {
		return exit.Word("local:" + path.Base(filepath.ToSlash(run.Folder)))
	}
	if run.Repo == "" || run.Number < 1 {
		return ""
	}
	mark := "#"
	if run.MergeRequest && run.Kind == "gitlab" {
		mark = "!"
	}
	return exit.Word(run.Repo + mark + strconv.FormatInt(run.Number, 10))
}

func ptr[T any](v T) *T { return &v }
