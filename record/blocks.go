package record

import (
	"cmp"
	"slices"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// Dollars is what a run was charged, in millionths of a dollar.
type Dollars struct {
	ReservedMicros int64     `json:"reservedMicros"`
	SettledMicros  int64     `json:"settledMicros"`
	Basis          exit.Word `json:"basis"`      // metered, floor, refunded or unreserved
	ModelBasis     exit.Word `json:"modelBasis"` // metered, floor, refunded or ""
}

func readDollars(v jsonval.Value) *Dollars {
	o, _ := v.Object()
	reserved, ok1 := o.Get("reservedMicros").Count()
	settled, ok2 := o.Get("settledMicros").Count()
	d := Dollars{reserved, settled,
		word(o.Get("basis"), oneOf("metered", "floor", "refunded", "unreserved")),
		word(o.Get("modelBasis"), oneOf("metered", "floor", "refunded"))}
	given := o.Get("modelBasis")
	if !ok1 || !ok2 || d.Basis == "" || d.ModelBasis == "" && given.Exists() && !given.IsNull() {
		return nil
	}
	return &d
}

// A Plan is what became of a run's plan.
type Plan struct {
	Outcome exit.Word `json:"outcome"` // applied, duplicate or refused
}

func readPlan(v jsonval.Value) *Plan {
	o, _ := v.Object()
	if outcome := word(o.Get("outcome"), oneOf("applied", "duplicate", "refused")); outcome != "" {
		return &Plan{outcome}
	}
	return nil
}

// A Size is how much of its host a job was given.
type Size struct {
	MemMiB   int64          `json:"memMiB"`
	CPUCenti int64          `json:"cpuCenti"` // hundredths of a CPU
	Source   jobsize.Source `json:"source"`
}

func readSize(v jsonval.Value) *Size {
	o, _ := v.Object()
	mem, cpu := positive(o.Get("memMiB")), positive(o.Get("cpuCenti"))
	source := word(o.Get("source"), oneOf(string(jobsize.FromProject), string(jobsize.FromEnv), string(jobsize.FromDefault)))
	if mem == nil || cpu == nil || source == "" {
		return nil
	}
	return &Size{*mem, *cpu, jobsize.Source(source)}
}

// A HostBudget is what a host that refused a job for its size has for jobs.
type HostBudget struct {
	MemMiB    Limit  `json:"memMiB"`
	CPUCenti  Limit  `json:"cpuCenti"`  // hundredths of a CPU
	HostShare *int64 `json:"hostShare"` // percent of it that the job might have
}

func readHostBudget(v jsonval.Value) *HostBudget {
	o, ok := v.Object()
	if !ok {
		return nil
	}
	return &HostBudget{
		readLimit(o.Get("memMiB"), jsonval.MaxSafeInt),
		readLimit(o.Get("cpuCenti"), jsonval.MaxSafeInt),
		count(o.Get("hostShare")),
	}
}

// A Capacity is what the host had for jobs when this one took its slot.
type Capacity struct {
	Slots    *int64 `json:"slots"` // 1..16384
	MemMiB   Limit  `json:"memMiB"`
	CPUCenti Limit  `json:"cpuCenti"` // hundredths of a CPU
	CPUs     *int64 `json:"cpus"`     // 1..4096
}

func readCapacity(v jsonval.Value) *Capacity {
	o, ok := v.Object()
	if !ok {
		return nil
	}
	return &Capacity{
		within(o.Get("slots"), 1, jobsize.MaxHostSlots),
		readLimit(o.Get("memMiB"), int64(jobsize.MaxHostMem)),
		readLimit(o.Get("cpuCenti"), 100*jobsize.MaxHostCPUs),
		within(o.Get("cpus"), 1, jobsize.MaxHostCPUs),
	}
}

// A Canary is the job of which this one tries another model.
type Canary struct {
	SourceJobID exit.Word `json:"sourceJobId"`
	Role        exit.Word `json:"role"`
	Candidate   exit.Word `json:"candidate"` // provider/model
}

func readCanary(v jsonval.Value) *Canary {
	o, _ := v.Object()
	c := Canary{word(o.Get("sourceJobId"), isSourceID), word(o.Get("role"), isCanaryRole), word(o.Get("candidate"), isCandidate)}
	if c.SourceJobID == "" || c.Role == "" || c.Candidate == "" {
		return nil
	}
	return &c
}

// An Approval is the request that a run waited for, and what was decided.
type Approval struct {
	RequestID exit.Word `json:"requestId"` // 64 lower hex
	Action    exit.Word `json:"action"`
	// Decision is approved, declined, question or "". Without one the other
	// three are not there.
	Decision  exit.Word `json:"decision,omitempty"`
	ActorKind exit.Word `json:"actorKind,omitempty"` // forge, operator, panel or system
	ActorID   exit.Word `json:"actorId,omitempty"`   // 64 lower hex, expiry or revocation
	DecidedAt *int64    `json:"decidedAt,omitempty"` // milliseconds since 1970
}

func readApproval(v jsonval.Value) *Approval {
	o, _ := v.Object()
	a := Approval{RequestID: word(o.Get("requestId"), exit.ValidDigest), Action: word(o.Get("action"), exit.ValidAction)}
	if a.RequestID == "" || a.Action == "" {
		return nil
	}
	decision := o.Get("decision")
	if !decision.Exists() || decision.IsNull() {
		return &a
	}
	a.Decision = word(decision, oneOf("approved", "declined", "question"))
	a.ActorKind = word(o.Get("actorKind"), oneOf("forge", "operator", "panel", "system"))
	a.ActorID = word(o.Get("actorId"), func(s string) bool {
		return s == "expiry" || s == "revocation" || exit.ValidDigest(s)
	})
	a.DecidedAt = count(o.Get("decidedAt"))
	if a.Decision == "" || a.ActorKind == "" || a.ActorID == "" || a.DecidedAt == nil {
		return nil
	}
	return &a
}

// A PackageCanary is the package that a run tried out.
type PackageCanary struct {
	Name    exit.Word `json:"name"`
	Version exit.Word `json:"version"` // an exact one
	Load    exit.Word `json:"load"`    // loaded, failed or ""
}

func readPackageCanary(v jsonval.Value) *PackageCanary {
	o, _ := v.Object()
	c := PackageCanary{word(o.Get("name"), isPackageName), word(o.Get("version"), isExactVersion), word(o.Get("load"), oneOf("loaded", "failed"))}
	if c.Name == "" || c.Version == "" {
		return nil
	}
	return &c
}

// Checkpoints counts the checkpoints of a run.
type Checkpoints struct {
	Written int64 `json:"written"`
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
}

func readCheckpoints(v jsonval.Value) *Checkpoints {
	if n, ok := threeCounts(v, "written", "failed", "skipped"); ok {
		return &Checkpoints{n[0], n[1], n[2]}
	}
	return nil
}

// Steered counts the steering messages to a run.
type Steered struct {
	Delivered int64 `json:"delivered"`
	Late      int64 `json:"late"`
	Withdrawn int64 `json:"withdrawn"`
}

func readSteered(v jsonval.Value) *Steered {
	if n, ok := threeCounts(v, "delivered", "late", "withdrawn"); ok {
		return &Steered{n[0], n[1], n[2]}
	}
	return nil
}

func threeCounts(v jsonval.Value, keys ...string) (n [3]int64, ok bool) {
	o, _ := v.Object()
	for i, key := range keys {
		if n[i], ok = o.Get(key).Count(); !ok {
			return n, false
		}
	}
	return n, true
}

// Loaded is what a run loaded: packages and how many things of each.
type Loaded struct {
	Packages []LoadedPackage `json:"packages"` // sorted by name, at most 64
	Cut      bool            `json:"cut,omitempty"`
}

// A LoadedPackage is one row of Loaded.
type LoadedPackage struct {
	Name  exit.Word `json:"name"` // an npm package's
	Count int64     `json:"count"`
}

const maxLoaded = 64

func readLoaded(v jsonval.Value) *Loaded {
	o, _ := v.Object()
	l := Loaded{Packages: []LoadedPackage{}}
	l.Cut, _ = o.Get("cut").Bool()
	rows, ok := o.Get("packages").List()
	if len(rows) > maxLoaded || !ok && !l.Cut {
		return nil
	}
	for _, row := range rows {
		r, _ := row.Object()
		name := word(r.Get("name"), isPackageName)
		n, ok := r.Get("count").Count()
		if name == "" || !ok {
			return nil
		}
		l.Packages = append(l.Packages, LoadedPackage{name, n})
	}
	slices.SortStableFunc(l.Packages, func(a, b LoadedPackage) int { return cmp.Compare(a.Name, b.Name) })
	return &l
}

// count returns a safe integer that is not negative, nil for anything else.
func count(v jsonval.Value) *int64 { return within(v, 0, jsonval.MaxSafeInt) }

// positive returns a safe integer above 0, nil for anything else.
func positive(v jsonval.Value) *int64 { return within(v, 1, jsonval.MaxSafeInt) }

// integer returns a safe integer, nil for anything else.
func integer(v jsonval.Value) *int64 { return within(v, -jsonval.MaxSafeInt, jsonval.MaxSafeInt) }

func within(v jsonval.Value, low, high int64) *int64 {
	n, ok := v.Int()
	if !ok || n < low || n > high {
		return nil
	}
	return &n
}

func readLimit(v jsonval.Value, high int64) Limit {
	if text, _ := v.Text(); text == "off" {
		return Limit{jobsize.Off()}
	}
	if n := within(v, 0, high); n != nil {
		return Limit{jobsize.Known(*n)}
	}
	return Limit{}
}
