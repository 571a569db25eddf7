package container

import (
	"context"
	"fmt"
	"strings"
)

// createNetwork makes a network for one run, with no way out of it.
func (c *client) createNetwork(ctx context.Context, name string, labels Labels) error {
	args := []string{"network", "create", "--internal"}
	for _, label := range labels.pairs() {
		if label[1] != "" {
			args = append(args, "--label="+label[0]+"="+label[1])
		}
	}
	if _, err := c.call(ctx, append(args, name)...); err != nil {
		return fmt.Errorf("make the run's network: %w", err)
	}
	return nil
}

// removeNetwork removes a network, and returns nil once the runtime says that
// it is gone.
func (c *client) removeNetwork(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, c.bounds.gone)
	defer cancel()
	for {
		_, err := c.call(ctx, "network", "rm", name)
		if err == nil {
			return nil
		}
		if there, askErr := c.networkExists(ctx, name); askErr == nil && !there {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("remove network %.200q: %w", name, err)
		}
		pause(ctx, c.bounds.again)
	}
}

func (c *client) networkExists(ctx context.Context, name string) (bool, error) {
	names, err := c.networks(ctx, "name="+name)
	for _, n := range names {
		if n == name {
			return true, err
		}
	}
	return false, err
}

// networks returns the names of the networks that pass a filter.
func (c *client) networks(ctx context.Context, filter string) ([]string, error) {
	answer, err := c.call(ctx, "network", "ls", "--filter="+filter, "--format={{.Name}}")
	return strings.Fields(string(answer)), err
}
