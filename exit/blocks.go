package exit

import (
	"math"
	"slices"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// The functions below rebuild one block each from its JSON, of an exit line or
// of a record: total, nil for a value that is not there or not as the format
// says. [ReadUsage] and [ReadResources] stand in files of their own.

// ReadTokens rebuilds tokens: nil unless the total is a finite number of at
// least 0; any other number that is not one is left out.
func ReadTokens(v jsonval.Value) *Tokens {
	o, _ := v.Object()
	total := amount(o.Get("total"))
	if total == nil {
		return nil
	}
	return &Tokens{
		Input:        amount(o.Get("input")),
		Output:       amount(o.Get("output")),
		CacheRead:    amount(o.Get("cacheRead")),
		CacheWrite:   amount(o.Get("cacheWrite")),
		CacheWrite1h: amount(o.Get("cacheWrite1h")),
		Reasoning:    amount(o.Get("reasoning")),
		Total:        *total,
		Cost:         amount(o.Get("cost")),
	}
}

// ReadSession rebuilds a session: nil without a boolean resumed; the reason is
// absent unless it is one of the vocabulary's.
func ReadSession(v jsonval.Value, vocabulary Vocabulary) *Session {
	o, _ := v.Object()
	resumed, ok := o.Get("resumed").Bool()
	if !ok {
		return nil
	}
	return &Session{resumed, oneOf(o.Get("reason"), vocabulary.orDefault().Session)}
}

// ReadContext rebuilds a context: nil unless tokens is a safe integer of at
// least 0 and window one above 0.
func ReadContext(v jsonval.Value) *Context {
	o, _ := v.Object()
	tokens, okTokens := o.Get("tokens").Count()
	window, okWindow := o.Get("window").Count()
	if !okTokens || !okWindow || window == 0 {
		return nil
	}
	return &Context{tokens, window}
}

// ReadApproval rebuilds an approval: nil unless both its parts are valid.
func ReadApproval(v jsonval.Value) *Approval {
	o, _ := v.Object()
	action, _ := o.Get("action").Text()
	id, _ := o.Get("toolCallId").Text()
	if !ValidAction(action) || !validToolCallID(id) {
		return nil
	}
	return &Approval{Word(action), Word(id)}
}

const maxRefusals = 8

// ReadModelRoles rebuilds a list of refusals: nil without a list, with more
// than eight rows or with a single bad one. An empty list stands.
func ReadModelRoles(v jsonval.Value) *ModelRoles {
	o, _ := v.Object()
	rows, ok := o.Get("refusals").List()
	if !ok || len(rows) > maxRefusals {
		return nil
	}
	refusals := make([]Refusal, len(rows))
	for i, row := range rows {
		r, _ := row.Object()
		refusals[i] = Refusal{digest(r.Get("agentHash")), oneOf(r.Get("reason"), refusalReasons)}
		if refusals[i].AgentHash == "" || refusals[i].Reason == "" {
			return nil
		}
	}
	return &ModelRoles{refusals}
}

// ReadProviderFailure rebuilds a provider failure: nil unless its kind is one
// of the closed set; a status outside 100..599 is left out.
func ReadProviderFailure(v jsonval.Value) *ProviderFailure {
	o, _ := v.Object()
	kind := oneOf(o.Get("kind"), providerKinds)
	if kind == "" {
		return nil
	}
	status := count(o.Get("status"))
	if status != nil && (*status < 100 || *status > 599) {
		status = nil
	}
	return &ProviderFailure{kind, status}
}

const (
	maxDeliveredIDs = 16
	deliveredIDLen  = 32
)

// ReadSteer rebuilds the steering counts: nil when nothing is left.
func ReadSteer(v jsonval.Value) *Steer {
	o, _ := v.Object()
	s := Steer{count(o.Get("delivered")), count(o.Get("pending")), deliveredIDs(o.Get("deliveredIds"))}
	if s.Delivered == nil && s.Pending == nil && s.DeliveredIDs == nil {
		return nil
	}
	return &s
}

// deliveredIDs returns the distinct ids in their order; nil when the list is
// empty, longer than it may be before that, or holds a bad one.
func deliveredIDs(v jsonval.Value) []Word {
	list, _ := v.List()
	if len(list) > maxDeliveredIDs {
		return nil
	}
	var ids []Word
	for _, item := range list {
		id, _ := item.Text()
		if len(id) != deliveredIDLen || !isLowerHex([]byte(id)) {
			return nil
		}
		if !slices.Contains(ids, Word(id)) {
			ids = append(ids, Word(id))
		}
	}
	return ids
}

// ReadRecovery rebuilds the recovery counts: nil when all are.
func ReadRecovery(v jsonval.Value) *Recovery {
	o, _ := v.Object()
	r := Recovery{count(o.Get("orphans")), count(o.Get("replayed")), count(o.Get("interrupted")), count(o.Get("notStarted"))}
	if r == (Recovery{}) {
		return nil
	}
	return &r
}

// count returns a safe integer that is not negative, nil for anything else.
func count(v jsonval.Value) *int64 {
	if n, ok := v.Count(); ok {
		return &n
	}
	return nil
}

// amount returns a finite number that is not negative, nil for anything else.
func amount(v jsonval.Value) *float64 {
	f, ok := v.Float()
	if !ok || f < 0 {
		return nil
	}
	f = math.Abs(f) // JSON can write -0
	return &f
}

// oneOf returns the text when it is in the set, "" otherwise.
func oneOf[T Word | Reason](v jsonval.Value, set []T) T {
	if text, _ := v.Text(); slices.Contains(set, T(text)) {
		return T(text)
	}
	return ""
}
