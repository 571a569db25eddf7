package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
)

// bullmq returns the system that runs under node.
func bullmq(folder string) func(context.Context, load) (result, error) {
	return func(ctx context.Context, l load) (result, error) {
		cmd := exec.CommandContext(ctx, "node", "bench.mjs", l.addr, l.prefix, strconv.Itoa(l.slots),
			strconv.Itoa(l.backlog), strconv.Itoa(l.paced), strconv.FormatInt(l.pace.Milliseconds(), 10))
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			return result{}, fmt.Errorf("node bench.mjs: %w", err)
		}
		var r result
		err = json.Unmarshal(out, &r)
		return r, err
	}
}
