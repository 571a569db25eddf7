package exit

import "encoding/json"

// A Line is the decisive exit line of a run, every field checked and rebuilt.
// A field is nil (or "", for a Word or Reason) unless it was exactly as the
// format says; nothing in a Line is text that the container chose freely,
// except Loaded, which is handed on unread.
//
// The JSON form writes what is absent as null.
type Line struct {
	// Code is the exit code the line claims. The container's real exit code,
	// which the line cannot change, is what a run is judged by.
	Code *int64 `json:"code"`
	// Reason is why a run that exited 2 was refused or stopped, one of the
	// vocabulary's policy reasons.
	Reason Reason `json:"reason"`
	// CompletedReason says what a run that exited 0 waits for: awaiting-input
	// or awaiting-approval.
	CompletedReason Reason `json:"completedReason"`
	// Why details the reason cost-cap.
	Why Word `json:"why"`
	// Turns counts the model turns of the run.
	Turns *int64 `json:"turns"`
	// OOMKilled is the supervisor's report that the command was killed for
	// memory. The report alone decides nothing.
	OOMKilled bool     `json:"oomKilled"`
	Tokens    *Tokens  `json:"tokens"`
	Usage     *Usage   `json:"usage"`
	Session   *Session `json:"session"`
	Context   *Context `json:"context"`
	// Resources is what the container's cgroup measured.
	Resources *Resources `json:"resources"`
	Approval  *Approval  `json:"approval"`
	Steer     *Steer     `json:"steer"`
	Recovery  *Recovery  `json:"recovery"`
	// CanaryLoad is loaded or failed.
	CanaryLoad Word `json:"canaryLoad"`

	// The fields below may be acted on only when Verified is true: see Trusted.

	ModelRoles      *ModelRoles      `json:"modelRoles"`
	ProviderFailure *ProviderFailure `json:"providerFailure"`
	ReplaySafe      *bool            `json:"replaySafe"`
	ToolsStarted    *bool            `json:"toolsStarted"`
	// AnswerDraftDigest and QuestionRefDigest are SHA-256 digests in lower hex.
	AnswerDraftDigest Word    `json:"answerDraftDigest"`
	QuestionRefDigest Word    `json:"questionRefDigest"`
	Loaded            *Loaded `json:"loaded"`

	// BySupervisor is true for a line that the supervisor wrote, not the
	// command itself.
	BySupervisor bool `json:"bySupervisor"`
	// Verified is true for a line whose signature was checked with the run's
	// key.
	Verified bool `json:"verified"`
}

// Trusted returns the line with only what may be acted on: all of a verified
// line, and any other one without the fields that only a verified line may
// give. It changes nothing in l; nil stays nil.
func (l *Line) Trusted() *Line {
	if l == nil || l.Verified {
		return l
	}
	t := *l
	t.ModelRoles, t.ProviderFailure = nil, nil
	t.ReplaySafe, t.ToolsStarted = nil, nil
	t.AnswerDraftDigest, t.QuestionRefDigest = "", ""
	t.Loaded = nil
	return &t
}

// A Word is a text out of a closed set or of a checked pattern. The zero value
// means absent and is null in JSON.
type Word string

// MarshalJSON implements [json.Marshaler].
func (w Word) MarshalJSON() ([]byte, error) { return marshalText(string(w)) }

// A Reason is a token that says why a run ended as it did. The zero value means
// that there is none and is null in JSON.
type Reason string

// MarshalJSON implements [json.Marshaler].
func (r Reason) MarshalJSON() ([]byte, error) { return marshalText(string(r)) }

func marshalText(s string) ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(s)
}

// Tokens is what a run used, by kind of token. Each number is finite and not
// negative; what was not reported is nil.
type Tokens struct {
	Input        *float64 `json:"input,omitempty"`
	Output       *float64 `json:"output,omitempty"`
	CacheRead    *float64 `json:"cacheRead,omitempty"`
	CacheWrite   *float64 `json:"cacheWrite,omitempty"`
	CacheWrite1h *float64 `json:"cacheWrite1h,omitempty"`
	Reasoning    *float64 `json:"reasoning,omitempty"`
	Total        float64  `json:"total"`
	Cost         *float64 `json:"cost,omitempty"`
}

// Usage is what a run used, by model.
type Usage struct {
	V         int64       `json:"v"`
	PiAi      Word        `json:"piAi"`
	Truncated bool        `json:"truncated"`
	Models    []ModelUsed `json:"models"`
}

// A ModelUsed is one row of a Usage. A counter that was not reported is 0.
type ModelUsed struct {
	Provider       Word    `json:"provider"`
	Model          Word    `json:"model"`
	Calls          float64 `json:"calls"`
	Input          float64 `json:"input"`
	Output         float64 `json:"output"`
	CacheRead      float64 `json:"cacheRead"`
	CacheWrite     float64 `json:"cacheWrite"`
	CacheWrite1h   float64 `json:"cacheWrite1h"`
	Reasoning      float64 `json:"reasoning"`
	Total          float64 `json:"total"`
	Cost           float64 `json:"cost"`
	Unpriced       float64 `json:"unpriced"`
	ProviderBilled float64 `json:"providerBilled"`
}

// A Session says whether a run went on with an earlier session, or why not.
type Session struct {
	Resumed bool   `json:"resumed"`
	Reason  Reason `json:"reason"`
}

// A Context is how full the model's context window was at the end, in tokens.
type Context struct {
	Tokens int64 `json:"tokens"`
	Window int64 `json:"window"`
}

// Resources is what the kernel measured of a run's cgroup: bytes, microseconds
// and counts, each not negative and at most 2^53 - 1, nil when the kernel did
// not give it.
type Resources struct {
	MemPeak       *int64 `json:"memPeak"`       // bytes
	SwapPeak      *int64 `json:"swapPeak"`      // bytes
	OOMKills      *int64 `json:"oomKills"`      // processes killed for memory
	MemSomeUsec   *int64 `json:"memSomeUsec"`   // time some task waited for memory
	MemFullUsec   *int64 `json:"memFullUsec"`   // time every task waited for memory
	CPUUsec       *int64 `json:"cpuUsec"`       // CPU time used
	ThrottledUsec *int64 `json:"throttledUsec"` // time held back by the CPU quota
	Throttled     *int64 `json:"throttled"`     // periods in which it was held back
	PidsPeak      *int64 `json:"pidsPeak"`      // most tasks at one time
}

// An Approval is what a run that exited 0 waits to be allowed.
type Approval struct {
	Action     Word `json:"action"`
	ToolCallID Word `json:"toolCallId"`
}

// ModelRoles lists what the run's model role policy refused; an empty list is
// [] in JSON.
type ModelRoles struct {
	Refusals []Refusal `json:"refusals"`
}

// A Refusal is one row of ModelRoles.
type Refusal struct {
	AgentHash Word   `json:"agentHash"` // SHA-256 in lower hex
	Reason    Reason `json:"reason"`
}

// A ProviderFailure is how the model provider failed a run that exited 1.
type ProviderFailure struct {
	Kind   Word   `json:"kind"`
	Status *int64 `json:"status,omitempty"` // HTTP status, 100..599
}

// Steer counts the steering messages of a run.
type Steer struct {
	Delivered    *int64 `json:"delivered"`
	Pending      *int64 `json:"pending"`
	DeliveredIDs []Word `json:"deliveredIds,omitempty"` // 32 lower hex each
}

// Recovery counts what a run found of an earlier one that had been cut off.
type Recovery struct {
	Orphans     *int64 `json:"orphans"`
	Replayed    *int64 `json:"replayed"`
	Interrupted *int64 `json:"interrupted"`
	NotStarted  *int64 `json:"notStarted"`
}

// Loaded is what the run loaded, as the container wrote it: Raw is JSON that
// nobody has read yet. Cut says that the container left it out for its size.
type Loaded struct {
	Raw json.RawMessage `json:"raw,omitempty"`
	Cut bool            `json:"cut,omitempty"`
}
