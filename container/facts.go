package container

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// Dialect returns the dialect of a runtime with these facts.
func (f Facts) Dialect() Dialect {
	return Dialect{
		Podman:   f.Runtime == podmanKind.name,
		CgroupV2: f.Cgroup == "v2",
		Systemd:  f.Driver == "systemd",
	}
}

// Facts returns what the runtime says of its host, asked for once. A run whose
// CPU ceiling the runtime refuses drops them, and they are asked for again. It
// returns ErrUnavailable.
func (c *client) Facts(ctx context.Context) (Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts == nil {
		facts, err := c.askFacts(ctx)
		if err != nil {
			return Facts{}, err
		}
		c.facts = &facts
	}
	facts := *c.facts
	facts.Unenforced = slices.Clone(facts.Unenforced)
	return facts, nil
}

func (c *client) askFacts(ctx context.Context) (Facts, error) {
	text, err := c.call(ctx, "info", "--format", "{{json .}}")
	if err != nil {
		return Facts{}, fmt.Errorf("ask %s about its host: is it running? %w: %w", c.kind.name, ErrUnavailable, err)
	}
	facts, err := c.kind.parseFacts(text)
	if err != nil {
		return Facts{}, fmt.Errorf("ask %s about its host: %w: %w", c.kind.name, ErrUnavailable, err)
	}
	facts.Runtime, facts.Isolated = c.kind.name, true
	return facts, nil
}

func (c *client) dropFacts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts = nil
}

// object reads text as one JSON object.
func object(text []byte) (jsonval.Object, error) {
	value, err := jsonval.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	o, ok := value.Object()
	if !ok {
		return nil, errors.New("read its answer: it is no JSON object")
	}
	return o, nil
}

// text returns a string, "" when the value is none.
func text(v jsonval.Value) string {
	s, _ := v.Text()
	return s
}

// positive returns a number above 0, unknown when the value is none.
func positive(v jsonval.Value) jobsize.Limit {
	if n, ok := v.Count(); ok && n > 0 {
		return jobsize.Known(n)
	}
	return jobsize.Limit{}
}

// isFalse reports whether the value says false; one that is absent says nothing.
func isFalse(v jsonval.Value) bool {
	b, ok := v.Bool()
	return ok && !b
}

// sizeFlags are the flags that a size becomes.
var sizeFlags = []string{"--memory", "--memory-swap", "--cpu-shares", "--cpus", "--pids-limit"}
