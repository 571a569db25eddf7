package exit

import "slices"

// The reasons that the format itself gives a meaning.
const (
	CostCap          Reason = "cost-cap"
	AwaitingInput    Reason = "awaiting-input"
	AwaitingApproval Reason = "awaiting-approval"
	OOMKilled        Reason = "oom-killed"
)

// A Vocabulary is the reasons that a runner image may give. Bring another one
// for another image; a nil list stands for that list of [DefaultVocabulary].
type Vocabulary struct {
	Policy    []Reason // why a run exited 2
	Completed []Reason // what a run that exited 0 waits for
	Session   []Reason // why a run went on with an earlier session, or not
}

// DefaultVocabulary returns the reasons of the reference runner image, in
// memory of the caller's own.
func DefaultVocabulary() Vocabulary {
	return Vocabulary{
		Policy:    slices.Clone(policyReasons),
		Completed: slices.Clone(completedReasons),
		Session:   slices.Clone(sessionReasons),
	}
}

// orDefault fills the lists that are nil, without copying.
func (v Vocabulary) orDefault() Vocabulary {
	if v.Policy == nil {
		v.Policy = policyReasons
	}
	if v.Completed == nil {
		v.Completed = completedReasons
	}
	if v.Session == nil {
		v.Session = sessionReasons
	}
	return v
}

var (
	policyReasons = []Reason{
		"provider-auth-refused", CostCap, "model-not-allowed", "model-roles-invalid", "model-roles-shadowed",
		"cost-cap-unenforceable", "model-policy-unenforceable", "mcp-unavailable", "mcp-config-invalid",
		"mcp-config-mismatch", "mcp-secret-missing", "mcp-command-missing", "mcp-shadowed", "exclude-tool-not-loaded",
		"answer-draft-refused", "await-input-shadowed", "await-input-without-session", "report-progress-shadowed",
		"steer-inbox-missing", "steer-no-exit-key", "question-group-refused", "question-group-unanswered",
		"approval-config-invalid", "approval-without-session", "approval-shadowed", "approval-decision-invalid",
	}
	completedReasons = []Reason{AwaitingInput, AwaitingApproval}
	sessionReasons   = []Reason{
		"resumed", "absent", "expired", "unreadable", "version-mismatch", "context-full", "disabled",
	}

	// The closed sets that belong to the format, not to a runner image.
	costCapWhys    = []Word{"unboundable", "external", "over-cap", "final-payload"}
	providerKinds  = []Word{"rate-limited", "overloaded", "auth", "quota", "network", "server"}
	refusalReasons = []Reason{"unknown-role", "model-not-allowed", "unknown-agent", "invalid-arguments", "aborted"}
	canaryLoads    = []Word{"loaded", "failed"}
)
