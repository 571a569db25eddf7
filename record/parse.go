package record

import (
	"errors"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
)

// ErrNotObject says that a text is JSON and no object, so no record.
var ErrNotObject = errors.New("the JSON is not an object")

// Parse reads a record and rebuilds it field by field: a value that is not
// exactly as the format says is nil, and a key that the format does not know is
// dropped. Of a record that is not [Record.Readable] it reads the core alone. It
// is an error when the text is no JSON object. The record shares no memory with
// text.
func Parse(text []byte) (Record, error) {
	v, err := jsonval.Parse(text)
	if err != nil {
		return Record{}, err
	}
	o, ok := v.Object()
	if !ok {
		return Record{}, ErrNotObject
	}
	f := index(o)
	r := Record{V: readVersion(f.get("v"))}
	r.readCore(f)
	if r.Readable() {
		r.readRest(f)
	}
	return r, nil
}

// keys are the keys of a record, in the order in which they are written.
var keys = []string{
	"jobId", "kind", "target", "flow", "startedAt", "endedAt", "outcome", "reason", "exitCode", "turns", "tokens",
	"usage", "provider", "model", "modelRole", "canary", "modelWhy", "providerFailure", "modelRoles",
	"budgetReserved", "attempt", "host", "project", "session", "backend", "dollars", "approval", "why", "plan",
	"resources", "packageCanary", "size", "hostBudget", "queuedAt", "capacity", "earlier", "stalledRepick",
	"progress", "recoveryOf", "recovered", "recoverSkipped", "checkpoints", "steered", "steerSkipped", "bundle",
	"bundleSkipped", "liveSkipped", "openshell", "secretsProfile", "maxTurns", "loaded", "jobCreatedAt", "v",
}

var position = func() map[string]int {
	m := make(map[string]int, len(keys))
	for i, key := range keys {
		m[key] = i
	}
	return m
}()

// fields are a record's values, each at its key's position: an object of fifty
// members is walked once and not once for each field.
type fields []jsonval.Value

func index(o jsonval.Object) fields {
	f := make(fields, len(keys))
	for _, m := range o {
		if i, ok := position[string(m.Key)]; ok {
			f[i] = m.Value // of a repeated key the last counts
		}
	}
	return f
}

func (f fields) get(key string) jsonval.Value { return f[position[key]] }

// readVersion returns 1 for a record that says none and 0 for one that says
// none that is valid.
func readVersion(v jsonval.Value) int64 {
	if !v.Exists() {
		return 1
	}
	n, _ := v.Int()
	return max(n, 0)
}

// readCore reads what keeps its meaning in every version.
func (r *Record) readCore(f fields) {
	r.JobID, _ = f.get("jobId").Text()
	r.Attempt = integer(f.get("attempt"))
	r.Outcome = readOutcome(f.get("outcome"))
	r.StartedAt = readInstant(f.get("startedAt"))
	r.EndedAt = readInstant(f.get("endedAt"))
	r.Host = word(f.get("host"), isHost)
	r.Kind = word(f.get("kind"), oneOf("local", "github", "gitlab", "forgejo", "azure"))
	r.Project = word(f.get("project"), isProject)
}

// readOutcome keeps any token, which may be a newer version's outcome: it settles
// its attempt like every other text that is not failed.
func readOutcome(v jsonval.Value) Outcome {
	text, ok := v.Text()
	if ok && !isToken(text) {
		return unknownOutcome
	}
	return Outcome(text)
}

// readInstant keeps a foreign spelling, because it still tells how old a record
// is, and the mark of a value that is no instant, because that is not the same
// as none.
func readInstant(v jsonval.Value) Instant {
	if !v.Exists() || v.IsNull() {
		return ""
	}
	text, _ := v.Text()
	if _, ok := Instant(text).Time(); !ok {
		return unparsed
	}
	return Instant(text)
}

// canonical reads an instant that only its canonical spelling can give.
func canonical(v jsonval.Value) Instant {
	if text, _ := v.Text(); Instant(text).Canonical() {
		return Instant(text)
	}
	return ""
}

func (r *Record) readRest(f fields) {
	r.Target = word(f.get("target"), func(s string) bool { return isTarget(string(r.Kind), s) })
	r.Flow = word(f.get("flow"), isFlow)
	r.Reason = exit.Reason(word(f.get("reason"), isToken))
	r.ExitCode = integer(f.get("exitCode"))
	r.Turns = integer(f.get("turns"))
	r.Tokens = exit.ReadTokens(f.get("tokens"))
	r.Usage = exit.ReadUsage(f.get("usage"))
	r.Provider = word(f.get("provider"), exit.ValidModelName)
	r.Model = word(f.get("model"), exit.ValidModelName)
	r.ModelRole = word(f.get("modelRole"), isRole)
	r.Canary = readCanary(f.get("canary"))
	r.ModelWhy = word(f.get("modelWhy"), oneOf("primary", "failover", "cooldown", "canary"))
	r.ProviderFailure = exit.ReadProviderFailure(f.get("providerFailure"))
	r.ModelRoles = exit.ReadModelRoles(f.get("modelRoles"))
	if b, ok := f.get("budgetReserved").Bool(); ok {
		r.BudgetReserved = &b
	}
	r.Session = readSession(f.get("session"))
	r.Backend = word(f.get("backend"), isVenue)
	r.Dollars = readDollars(f.get("dollars"))
	r.Approval = readApproval(f.get("approval"))
	r.Why = word(f.get("why"), isToken)
	r.Plan = readPlan(f.get("plan"))
	r.Resources = exit.ReadResources(f.get("resources"))
	r.PackageCanary = readPackageCanary(f.get("packageCanary"))
	r.Size = readSize(f.get("size"))
	r.HostBudget = readHostBudget(f.get("hostBudget"))
	r.QueuedAt = canonical(f.get("queuedAt"))
	r.Capacity = readCapacity(f.get("capacity"))
	r.Earlier = readEarlier(f.get("earlier"))
	r.StalledRepick, _ = f.get("stalledRepick").Bool()
	r.Progress = readProgress(f.get("progress"))
	r.RecoveryOf = word(f.get("recoveryOf"), isRecoveryID)
	r.Recovered = readRecovered(f.get("recovered"))
	r.RecoverSkipped = word(f.get("recoverSkipped"), oneOf("local", "no-run-id", "base-unprimed", "workspace-extensions"))
	r.Checkpoints = readCheckpoints(f.get("checkpoints"))
	r.Steered = readSteered(f.get("steered"))
	r.SteerSkipped = word(f.get("steerSkipped"), oneOf("venue-copies", "no-exit-key", "no-transcript", "no-inbox"))
	r.readVenue(f)
	r.LiveSkipped = word(f.get("liveSkipped"), oneOf("venue-copies", "no-capability", "no-exit-key"))
	r.SecretsProfile = word(f.get("secretsProfile"), isFlow)
	r.MaxTurns = positive(f.get("maxTurns"))
	r.Loaded = readLoaded(f.get("loaded"))
	r.JobCreatedAt = canonical(f.get("jobCreatedAt"))
}

// readVenue reads what depends on the venue that the job ran in.
func (r *Record) readVenue(f fields) {
	r.OpenShell = readOpenShell(f.get("openshell"), r.Backend)
	r.Bundle = readBundle(f.get("bundle"))
	if r.Bundle == nil {
		r.BundleSkipped = word(f.get("bundleSkipped"), oneOf("manual", "chained", "opted-out", "fork", "head-unverified"))
	} else if openShellModes[r.Backend] == "" {
		r.Bundle.PlaceholderNames = nil
	}
}

// readSession takes any token as the reason: which ones there are is the runner
// image's to say, and was checked when the exit line was read.
func readSession(v jsonval.Value) *exit.Session {
	o, _ := v.Object()
	resumed, ok := o.Get("resumed").Bool()
	if !ok {
		return nil
	}
	return &exit.Session{Resumed: resumed, Reason: exit.Reason(word(o.Get("reason"), isToken))}
}
