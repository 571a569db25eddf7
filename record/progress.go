package record

import (
	"encoding/json"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
)

// Progress counts what a run did, as far as its source knew.
type Progress struct {
	Turns                *int64 `json:"turns,omitempty"`
	Steps                *int64 `json:"steps,omitempty"`
	Failed               *int64 `json:"failed,omitempty"`
	Interrupted          *int64 `json:"interrupted,omitempty"`
	Replayed             *int64 `json:"replayed,omitempty"`
	ToolMs               *int64 `json:"toolMs,omitempty"`               // milliseconds
	LongestStepMs        *int64 `json:"longestStepMs,omitempty"`        // milliseconds
	LongestInterruptedMs *int64 `json:"longestInterruptedMs,omitempty"` // milliseconds
	PhasesDeclared       *int64 `json:"phasesDeclared,omitempty"`
	LastPhaseIndex       *int64 `json:"lastPhaseIndex,omitempty"` // 0 for the first
	Tools                *Tools `json:"tools,omitempty"`
}

// Tools counts the steps of a run by tool. A name outside this list is chosen
// by a model and goes into no record.
type Tools struct {
	Read            int64 `json:"read,omitempty"`
	Bash            int64 `json:"bash,omitempty"`
	Edit            int64 `json:"edit,omitempty"`
	Write           int64 `json:"write,omitempty"`
	Grep            int64 `json:"grep,omitempty"`
	Find            int64 `json:"find,omitempty"`
	Ls              int64 `json:"ls,omitempty"`
	AwaitHumanInput int64 `json:"await_human_input,omitempty"`
	ReportProgress  int64 `json:"report_progress,omitempty"`
	Other           int64 `json:"other,omitempty"`
}

func readProgress(v jsonval.Value) *Progress {
	o, ok := v.Object()
	if !ok {
		return nil
	}
	p := &Progress{
		Turns:                positive(o.Get("turns")),
		Steps:                positive(o.Get("steps")),
		Failed:               positive(o.Get("failed")),
		Interrupted:          positive(o.Get("interrupted")),
		Replayed:             positive(o.Get("replayed")),
		ToolMs:               positive(o.Get("toolMs")),
		LongestStepMs:        positive(o.Get("longestStepMs")),
		LongestInterruptedMs: positive(o.Get("longestInterruptedMs")),
		PhasesDeclared:       positive(o.Get("phasesDeclared")),
		Tools:                readTools(o.Get("tools")),
	}
	if p.PhasesDeclared != nil {
		p.LastPhaseIndex = count(o.Get("lastPhaseIndex"))
	}
	return p
}

func readTools(v jsonval.Value) *Tools {
	o, _ := v.Object()
	n := func(key string) int64 {
		if n := positive(o.Get(key)); n != nil {
			return *n
		}
		return 0
	}
	t := Tools{
		n("read"), n("bash"), n("edit"), n("write"), n("grep"), n("find"), n("ls"),
		n("await_human_input"), n("report_progress"), n("other"),
	}
	if t == (Tools{}) {
		return nil
	}
	return &t
}

// Recovered says from what a run went on that an earlier one had left cut off.
type Recovered struct {
	From          exit.Word `json:"from"` // live, exit or salvage
	N             int64     `json:"n"`    // 1 for the first time
	FromAttempt   *int64    `json:"fromAttempt"`
	CheckpointSeq *int64    `json:"checkpointSeq"`
	Orphans       *int64    `json:"orphans"`
	Replayed      *int64    `json:"replayed"`
	Interrupted   *int64    `json:"interrupted"`
	NotStarted    *int64    `json:"notStarted"`
	// CountsFrom is exit-line or transcript.
	CountsFrom exit.Word `json:"countsFrom,omitempty"`
}

func readRecovered(v jsonval.Value) *Recovered {
	o, _ := v.Object()
	from, n := word(o.Get("from"), oneOf("live", "exit", "salvage")), positive(o.Get("n"))
	if from == "" || n == nil {
		return nil
	}
	return &Recovered{
		from, *n, count(o.Get("fromAttempt")), count(o.Get("checkpointSeq")),
		count(o.Get("orphans")), count(o.Get("replayed")), count(o.Get("interrupted")), count(o.Get("notStarted")),
		word(o.Get("countsFrom"), oneOf("exit-line", "transcript")),
	}
}

// RecoveryFromProgress returns the recovery counts that a run's progress, as its
// source wrote it, holds: for a [Recovered] whose run wrote no exit line. It
// returns nil when there are none, or none above 0.
func RecoveryFromProgress(progress json.RawMessage) *exit.Recovery {
	v, err := jsonval.Parse(progress)
	if err != nil {
		return nil
	}
	o, _ := v.Object()
	replayed, _ := o.Get("replayed").Count()
	interrupted, _ := o.Get("recoveryInterrupted").Count()
	notStarted, _ := o.Get("recoveryNotStarted").Count()
	orphans := replayed + interrupted + notStarted
	if orphans == 0 {
		return nil
	}
	return &exit.Recovery{Orphans: &orphans, Replayed: &replayed, Interrupted: &interrupted, NotStarted: &notStarted}
}
