package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

// Version is the version of the records that this package writes. It rises only
// when an existing field changes its meaning, unit or type.
const Version = 1

// A Record is what is kept of a run. Its JSON keys stand in the order of the
// fields. A field is nil, or "" for a text, when it is not known; such a key is
// null in the JSON or, where the tag says omitempty, not there.
//
// A Record comes from [Build] or [Parse]. A record that is not [Record.Readable]
// has its core alone: JobID, Kind, StartedAt, EndedAt, Outcome, Attempt, Host,
// Project and V.
type Record struct {
	JobID string `json:"jobId"` // the raw id
	// Kind is local or a forge: github, gitlab, forgejo or azure.
	Kind exit.Word `json:"kind"`
	// Target is local:<folder> or <repo>#<number>, <repo>!<number> at GitLab.
	Target          exit.Word             `json:"target"`
	Flow            exit.Word             `json:"flow"`
	StartedAt       Instant               `json:"startedAt"`
	EndedAt         Instant               `json:"endedAt"`
	Outcome         Outcome               `json:"outcome"`
	Reason          exit.Reason           `json:"reason"`
	ExitCode        *int64                `json:"exitCode"` // the container's real one
	Turns           *int64                `json:"turns"`
	Tokens          *exit.Tokens          `json:"tokens"`
	Usage           *exit.Usage           `json:"usage"`
	Provider        exit.Word             `json:"provider"`
	Model           exit.Word             `json:"model"`
	ModelRole       exit.Word             `json:"modelRole,omitempty"`
	Canary          *Canary               `json:"canary,omitempty"`
	ModelWhy        exit.Word             `json:"modelWhy,omitempty"` // primary, failover, cooldown or canary
	ProviderFailure *exit.ProviderFailure `json:"providerFailure,omitempty"`
	ModelRoles      *exit.ModelRoles      `json:"modelRoles,omitempty"`
	BudgetReserved  *bool                 `json:"budgetReserved"`
	Attempt         *int64                `json:"attempt"` // 1 for the first
	Host            exit.Word             `json:"host"`
	Project         exit.Word             `json:"project"`
	Session         *exit.Session         `json:"session"`
	Backend         exit.Word             `json:"backend"` // the venue that the job resolved to
	Dollars         *Dollars              `json:"dollars"`
	Approval        *Approval             `json:"approval,omitempty"`
	Why             exit.Word             `json:"why"` // details the reason
	Plan            *Plan                 `json:"plan"`
	Resources       *exit.Resources       `json:"resources"`
	PackageCanary   *PackageCanary        `json:"packageCanary,omitempty"`
	Size            *Size                 `json:"size"`
	HostBudget      *HostBudget           `json:"hostBudget"` // only of a job that never fits
	QueuedAt        Instant               `json:"queuedAt"`   // when the job became eligible
	Capacity        *Capacity             `json:"capacity"`   // nil for a refusal before a slot
	Earlier         []Interval            `json:"earlier"`
	StalledRepick   bool                  `json:"stalledRepick"` // the first attempt, again after a stall
	Progress        *Progress             `json:"progress,omitempty"`
	RecoveryOf      exit.Word             `json:"recoveryOf,omitempty"`
	Recovered       *Recovered            `json:"recovered,omitempty"`
	RecoverSkipped  exit.Word             `json:"recoverSkipped,omitempty"`
	Checkpoints     *Checkpoints          `json:"checkpoints,omitempty"`
	Steered         *Steered              `json:"steered,omitempty"`
	SteerSkipped    exit.Word             `json:"steerSkipped,omitempty"`
	Bundle          *Bundle               `json:"bundle,omitempty"`
	BundleSkipped   exit.Word             `json:"bundleSkipped,omitempty"`
	LiveSkipped     exit.Word             `json:"liveSkipped,omitempty"`
	OpenShell       *OpenShell            `json:"openshell,omitempty"`
	SecretsProfile  exit.Word             `json:"secretsProfile,omitempty"`
	MaxTurns        *int64                `json:"maxTurns,omitempty"`
	Loaded          *Loaded               `json:"loaded,omitempty"`
	JobCreatedAt    Instant               `json:"jobCreatedAt,omitempty"`
	// V is the record's version, 0 for one that has no valid version.
	V int64 `json:"v"`
}

// Readable reports whether this build knows every field of the record, which
// may come from a newer one.
func (r *Record) Readable() bool { return r.V >= 1 && r.V <= Version }

// An Outcome is what became of an attempt. The zero value is null in JSON.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	Policy    Outcome = "policy"
	Failed    Outcome = "failed" // ended in an error or had no result

	unknownOutcome Outcome = "unknown" // of a foreign record, which said some other text
)

// MarshalJSON implements [json.Marshaler].
func (o Outcome) MarshalJSON() ([]byte, error) { return exit.Word(o).MarshalJSON() }

// A Limit is a budget in a record: a number, "off" where nothing is limited, or
// null where it is not known.
type Limit struct{ jobsize.Limit }

// MarshalJSON implements [json.Marshaler].
func (l Limit) MarshalJSON() ([]byte, error) {
	if n, ok := l.Value(); ok {
		return json.Marshal(n)
	}
	if l.IsOff() {
		return []byte(`"off"`), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON implements [json.Unmarshaler] with the rules of [Parse].
func (r *Record) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// line returns the record as one line of JSON with its newline.
func (r *Record) line() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return b.Bytes(), nil
}
