package exit

import "github.com/edgehero/dispatch/internal/jsonval"

const (
	maxModels  = 64
	maxPiAiLen = 64
)

// ReadUsage rebuilds what was used by model: nil unless every part of it is as
// the format says, because a sum over half of the rows would be wrong.
func ReadUsage(v jsonval.Value) *Usage {
	o, _ := v.Object()
	version, _ := o.Get("v").Int()
	piAi, okPiAi := optional(o.Get("piAi"), jsonval.Value.Text)
	truncated, okTruncated := optional(o.Get("truncated"), jsonval.Value.Bool)
	rows, okRows := o.Get("models").List()
	if version < 1 || !okPiAi || !validPiAi(piAi) || !okTruncated || !okRows || len(rows) > maxModels {
		return nil
	}
	models := make([]ModelUsed, len(rows))
	for i, row := range rows {
		m, ok := readModelUsed(row)
		if !ok {
			return nil
		}
		models[i] = m
	}
	return &Usage{version, Word(piAi), truncated, models}
}

func readModelUsed(v jsonval.Value) (ModelUsed, bool) {
	o, _ := v.Object()
	provider, _ := o.Get("provider").Text()
	model, _ := o.Get("model").Text()
	if !ValidModelName(provider) || !ValidModelName(model) {
		return ModelUsed{}, false
	}
	m := ModelUsed{Provider: Word(provider), Model: Word(model)}
	for _, f := range []struct {
		key  string
		into *float64
	}{
		{"calls", &m.Calls},
		{"input", &m.Input},
		{"output", &m.Output},
		{"cacheRead", &m.CacheRead},
		{"cacheWrite", &m.CacheWrite},
		{"cacheWrite1h", &m.CacheWrite1h},
		{"reasoning", &m.Reasoning},
		{"total", &m.Total},
		{"cost", &m.Cost},
		{"unpriced", &m.Unpriced},
		{"providerBilled", &m.ProviderBilled},
	} {
		given := o.Get(f.key)
		if absent(given) {
			continue
		}
		n := amount(given)
		if n == nil {
			return ModelUsed{}, false
		}
		*f.into = *n
	}
	return m, true
}

// optional reads a value that may be absent, which reads as T's zero value.
func optional[T any](v jsonval.Value, read func(jsonval.Value) (T, bool)) (value T, ok bool) {
	if absent(v) {
		return value, true
	}
	return read(v)
}
