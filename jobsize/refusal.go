package jobsize

import (
	"regexp"
	"strconv"
)

// refusalLength is how much of a runtime's standard error is looked at, in
// bytes.
const refusalLength = 4 << 10

// The case of the first letter differs by the runtime's version.
var refusal = regexp.MustCompile(`\b[Rr]ange of CPUs is from [0-9.]+ to [0-9.]+, as there are only ([0-9]{1,4}) CPUs available`)

// RefusedCPUs recognises, in the first 4 KiB of a container runtime's standard
// error, that it refused a CPU bound as above the host's count, and returns the
// count it named (1..4096). The caller's own idea of the count is then stale.
func RefusedCPUs(stderr []byte) (available int64, ok bool) {
	found := refusal.FindSubmatch(stderr[:min(len(stderr), refusalLength)])
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil || n < 1 || n > MaxHostCPUs {
		return 0, false
	}
	return n, true
}
