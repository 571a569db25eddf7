package record

import (
	"slices"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
)

// A Bundle is the set of variables that a run was given: their names, never
// what they hold.
type Bundle struct {
	ID        exit.Word `json:"id"`
	Variables []string  `json:"variables"` // unique, sorted
	Shadowed  []string  `json:"shadowed"`  // unique, sorted
	// Placeholders and Plain are both there or both not.
	Placeholders     *int64   `json:"placeholders,omitempty"`
	Plain            *int64   `json:"plain,omitempty"`
	PlaceholderNames []string `json:"placeholderNames,omitempty"`
}

const maxVariables = 64

func readBundle(v jsonval.Value) *Bundle {
	o, _ := v.Object()
	id := word(o.Get("id"), isFlow)
	variables, ok := variableNames(o.Get("variables"))
	if id == "" || !ok {
		return nil
	}
	shadowed := []string{}
	if given := o.Get("shadowed"); given.Exists() && !given.IsNull() {
		if shadowed, ok = variableNames(given); !ok {
			return nil
		}
	}
	b := &Bundle{ID: id, Variables: variables, Shadowed: shadowed}
	placeholders := within(o.Get("placeholders"), 0, maxVariables)
	plain := within(o.Get("plain"), 0, maxVariables)
	if placeholders == nil || plain == nil || *placeholders+*plain > int64(len(variables)) {
		return b
	}
	b.Placeholders, b.Plain = placeholders, plain
	b.PlaceholderNames = placeholderNames(o.Get("placeholderNames"), b)
	return b
}

// placeholderNames returns the names of the placeholders, nil when one can't be.
func placeholderNames(v jsonval.Value, b *Bundle) []string {
	names, ok := variableNames(v)
	if !ok || len(names) == 0 || int64(len(names)) > *b.Placeholders {
		return nil
	}
	for _, name := range names {
		if !slices.Contains(b.Variables, name) || slices.Contains(b.Shadowed, name) {
			return nil
		}
	}
	return names
}

// variableNames returns the distinct names of a list, sorted; ok is false when
// it is no list, too long as given or holds a bad name.
func variableNames(v jsonval.Value) (names []string, ok bool) {
	list, ok := v.List()
	if !ok || len(list) > maxVariables {
		return nil, false
	}
	names = []string{}
	for _, item := range list {
		name, ok := item.Text()
		if !ok || !isVariable(name) {
			return nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// An OpenShell is what a run's sandbox let it reach.
type OpenShell struct {
	Mode          exit.Word `json:"mode"`      // copy or bind
	RuleHosts     []string  `json:"ruleHosts"` // unique, sorted, at most 32
	RuleHostCount int64     `json:"ruleHostCount"`
	Providers     int64     `json:"providers"`
	Placeholders  int64     `json:"placeholders"`
}

const (
	maxRuleHosts     = 32
	maxRuleHostCount = 65536
	maxProviders     = 1024
)

// openShellModes is the mode of each venue that has such a sandbox.
var openShellModes = map[exit.Word]exit.Word{"openshell": "copy", "openshell-bind": "bind"}

func readOpenShell(v jsonval.Value, backend exit.Word) *OpenShell {
	o, _ := v.Object()
	mode := word(o.Get("mode"), oneOf("copy", "bind"))
	hosts, ok := o.Get("ruleHosts").List()
	providers := within(o.Get("providers"), 0, maxProviders)
	placeholders := within(o.Get("placeholders"), 0, maxProviders)
	if mode == "" || openShellModes[backend] != mode || !ok || providers == nil || placeholders == nil {
		return nil
	}
	listed := []string{}
	for _, h := range hosts {
		if host, ok := h.Text(); ok && isRuleHost(host) {
			listed = append(listed, host)
		}
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	total := int64(len(listed))
	listed = listed[:min(len(listed), maxRuleHosts)]
	if given := within(o.Get("ruleHostCount"), int64(len(listed)), maxRuleHostCount); given != nil {
		total = max(total, *given)
	}
	return &OpenShell{mode, listed, total, *providers, *placeholders}
}
