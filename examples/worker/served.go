package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/worker"
)

// A served is one thing that serve tells, in JSON a line of its own.
type served struct {
	Event   string       `json:"event"` // serving, or what became of a job
	At      time.Time    `json:"at"`
	Queue   string       `json:"queue,omitempty"` // the folder or the server, of serving
	Slots   int          `json:"slots,omitempty"` // of serving
	Job     string       `json:"job,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
	Outcome worker.Class `json:"outcome,omitempty"` // of an attempt that ended
	Reason  exit.Reason  `json:"reason,omitempty"`
	Due     time.Time    `json:"due,omitzero"` // when a job that was put back is due again
}

func servedOf(e worker.Event) served {
	return served{
		Event: string(e.Kind), At: e.At.UTC(), Job: e.Job, Attempt: e.Attempt,
		Outcome: e.Outcome.Class, Reason: e.Outcome.Reason, Due: e.Due.UTC(),
	}
}

// String returns the plain line.
func (s served) String() string {
	if s.Job == "" {
		return fmt.Sprintf("%s %s with %d slots", s.Event, s.Queue, s.Slots)
	}
	line := fmt.Sprintf("%s job=%s attempt=%d", s.Event, printable([]byte(s.Job)), s.Attempt)
	if s.Outcome != "" {
		line += fmt.Sprintf(" outcome=%s reason=%s", s.Outcome, orDash(string(s.Reason)))
	}
	return line
}

// tell prints one line.
func (p *program) tell(s served, asJSON bool) {
	line := s.String()
	if asJSON {
		text, err := json.Marshal(s)
		if err != nil {
			return // there is nothing in it that JSON can't say
		}
		line = string(text)
	}
	fmt.Fprintln(p.stdout, line)
}
