package exit

import "github.com/edgehero/dispatch/internal/jsonval"

// ReadResources rebuilds what the kernel measured: nil when there is no value
// or when any that is there is no safe integer of at least 0, because half of a
// forged block is no measurement.
func ReadResources(v jsonval.Value) *Resources {
	o, _ := v.Object()
	var r Resources
	for _, f := range []struct {
		key  string
		into **int64
	}{
		{"memPeak", &r.MemPeak},
		{"swapPeak", &r.SwapPeak},
		{"oomKills", &r.OOMKills},
		{"memSomeUsec", &r.MemSomeUsec},
		{"memFullUsec", &r.MemFullUsec},
		{"cpuUsec", &r.CPUUsec},
		{"throttledUsec", &r.ThrottledUsec},
		{"throttled", &r.Throttled},
		{"pidsPeak", &r.PidsPeak},
	} {
		given := o.Get(f.key)
		if absent(given) {
			continue
		}
		if *f.into = count(given); *f.into == nil {
			return nil
		}
	}
	if r == (Resources{}) {
		return nil
	}
	return &r
}

// absent reports whether there is no value, or null.
func absent(v jsonval.Value) bool { return !v.Exists() || v.IsNull() }
