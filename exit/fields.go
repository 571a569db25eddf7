package exit

import (
	"bytes"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// rebuilding is a Line in the making. A field's rule may ask for fields that
// stand before it in the table.
type rebuilding struct {
	line       Line
	vocabulary Vocabulary
}

// How a field came out, beside the reasons for which one is dropped.
const (
	kept    = "kept"
	missing = "absent"
)

// fields are the fields of an exit line, each read from one key into r.line by
// a function that answers kept, missing or why the value was dropped. It is not
// called for a key that is absent or null.
var fields = []struct {
	name string
	key  string
	read func(r *rebuilding, v jsonval.Value) (result string)
}{
	{"by", "by", func(r *rebuilding, v jsonval.Value) string {
		text, _ := v.Text()
		r.line.BySupervisor = text == "supervisor"
		return keptIf(r.line.BySupervisor, "not supervisor")
	}},
	{"code", "code", func(r *rebuilding, v jsonval.Value) string {
		r.line.Code = integer(v)
		return keptIf(r.line.Code != nil, "not a safe integer")
	}},
	{"turns", "turns", func(r *rebuilding, v jsonval.Value) string {
		r.line.Turns = integer(v)
		return keptIf(r.line.Turns != nil, "not a safe integer")
	}},
	{"reason", "reason", func(r *rebuilding, v jsonval.Value) string {
		if r.exited(0) {
			return missing // the key is completedReason's
		}
		if !r.exited(2) {
			return "only when code is 2"
		}
		r.line.Reason = oneOf(v, r.vocabulary.Policy)
		return keptIf(r.line.Reason != "", "not a policy reason of the vocabulary")
	}},
	{"completedReason", "reason", func(r *rebuilding, v jsonval.Value) string {
		if !r.exited(0) {
			return missing // the key is reason's
		}
		r.line.CompletedReason = oneOf(v, r.vocabulary.Completed)
		return keptIf(r.line.CompletedReason != "", "not a completed reason of the vocabulary")
	}},
	{"why", "why", func(r *rebuilding, v jsonval.Value) string {
		if !r.exited(2) || r.line.Reason != CostCap {
			return "only when code is 2 and reason is cost-cap"
		}
		r.line.Why = oneOf(v, costCapWhys)
		return keptIf(r.line.Why != "", "not one of the known words")
	}},
	{"tokens", "tokens", func(r *rebuilding, v jsonval.Value) string {
		r.line.Tokens = ReadTokens(v)
		return keptIf(r.line.Tokens != nil, "not an object with a total of at least 0")
	}},
	{"usage", "usage", func(r *rebuilding, v jsonval.Value) string {
		r.line.Usage = ReadUsage(v)
		return keptIf(r.line.Usage != nil, "not an object of v, piAi, truncated and at most 64 models, all well formed")
	}},
	{"session", "session", func(r *rebuilding, v jsonval.Value) string {
		r.line.Session = ReadSession(v, r.vocabulary)
		return keptIf(r.line.Session != nil, "not an object with a boolean resumed")
	}},
	{"context", "context", func(r *rebuilding, v jsonval.Value) string {
		r.line.Context = ReadContext(v)
		return keptIf(r.line.Context != nil, "not an object of safe integers, tokens at least 0 and window above 0")
	}},
	{"resources", "resources", func(r *rebuilding, v jsonval.Value) string {
		r.line.Resources = ReadResources(v)
		return keptIf(r.line.Resources != nil, "not an object of measurements, each a safe integer of at least 0")
	}},
	{"oomKilled", "reason", func(r *rebuilding, v jsonval.Value) string {
		if text, _ := v.Text(); Reason(text) != OOMKilled {
			return missing
		}
		l := &r.line
		l.OOMKilled = l.BySupervisor && r.exited(137) &&
			l.Resources != nil && l.Resources.OOMKills != nil && *l.Resources.OOMKills > 0
		return keptIf(l.OOMKilled, "only by the supervisor, when code is 137 and resources count an oomKill")
	}},
	{"approval", "approval", func(r *rebuilding, v jsonval.Value) string {
		if r.line.CompletedReason != AwaitingApproval {
			return "only when code is 0 and reason is awaiting-approval"
		}
		r.line.Approval = ReadApproval(v)
		return keptIf(r.line.Approval != nil, "not an object with a valid action and toolCallId")
	}},
	{"steer", "steer", func(r *rebuilding, v jsonval.Value) string {
		r.line.Steer = ReadSteer(v)
		return keptIf(r.line.Steer != nil, "not an object with a valid count or list of ids")
	}},
	{"recovery", "recovery", func(r *rebuilding, v jsonval.Value) string {
		r.line.Recovery = ReadRecovery(v)
		return keptIf(r.line.Recovery != nil, "not an object with a valid count")
	}},
	{"canaryLoad", "canaryLoad", func(r *rebuilding, v jsonval.Value) string {
		r.line.CanaryLoad = oneOf(v, canaryLoads)
		return keptIf(r.line.CanaryLoad != "", "not loaded or failed")
	}},
	{"modelRoles", "modelRoles", func(r *rebuilding, v jsonval.Value) string {
		r.line.ModelRoles = ReadModelRoles(v)
		return keptIf(r.line.ModelRoles != nil, "not an object with a list of at most 8 valid refusals")
	}},
	{"providerFailure", "providerFailure", func(r *rebuilding, v jsonval.Value) string {
		if !r.exited(1) {
			return "only when code is 1"
		}
		r.line.ProviderFailure = ReadProviderFailure(v)
		return keptIf(r.line.ProviderFailure != nil, "not an object with a known kind")
	}},
	{"replaySafe", "replaySafe", func(r *rebuilding, v jsonval.Value) string {
		r.line.ReplaySafe = boolean(v)
		return keptIf(r.line.ReplaySafe != nil, "not a boolean")
	}},
	{"toolsStarted", "toolsStarted", func(r *rebuilding, v jsonval.Value) string {
		r.line.ToolsStarted = boolean(v)
		return keptIf(r.line.ToolsStarted != nil, "not a boolean")
	}},
	{"answerDraftDigest", "answerDraftDigest", func(r *rebuilding, v jsonval.Value) string {
		if !r.exited(0) {
			return "only when code is 0"
		}
		r.line.AnswerDraftDigest = digest(v)
		return keptIf(r.line.AnswerDraftDigest != "", "not 64 lower-case hex characters")
	}},
	{"questionRefDigest", "questionRefDigest", func(r *rebuilding, v jsonval.Value) string {
		if r.line.CompletedReason != AwaitingInput {
			return "only when code is 0 and reason is awaiting-input"
		}
		r.line.QuestionRefDigest = digest(v)
		return keptIf(r.line.QuestionRefDigest != "", "not 64 lower-case hex characters")
	}},
	{"loaded", "loaded", func(r *rebuilding, v jsonval.Value) string {
		r.line.Loaded = &Loaded{Raw: bytes.Clone(v.Raw())}
		return kept
	}},
	{"loadedCut", "loadedCut", func(r *rebuilding, v jsonval.Value) string {
		if r.line.Loaded != nil {
			return "only without loaded"
		}
		if cut, _ := v.Bool(); !cut {
			return "not true"
		}
		r.line.Loaded = &Loaded{Cut: true}
		return kept
	}},
}

func keptIf(ok bool, otherwise string) string {
	if ok {
		return kept
	}
	return otherwise
}

// exited reports whether the line claims this exit code.
func (r *rebuilding) exited(code int64) bool { return r.line.Code != nil && *r.line.Code == code }

// integer returns a safe integer, nil for anything else.
func integer(v jsonval.Value) *int64 {
	if n, ok := v.Int(); ok {
		return &n
	}
	return nil
}

func boolean(v jsonval.Value) *bool {
	if b, ok := v.Bool(); ok {
		return &b
	}
	return nil
}
