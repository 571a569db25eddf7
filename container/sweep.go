package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/edgehero/dispatch/internal/instance"
)

// A Leftover is one thing that a dead instance left behind.
type Leftover struct {
	Instance string
	Kind     string // container, network, files or what a Holder names
	Name     string
	// Job is the job that it belongs to, where that is known. What a job left
	// is removed in the order of the Holders, one after the other.
	Job string
	// Gone is true once it does not exist any more. Err says why it still does.
	Gone bool
	Err  error
}

// A Holder knows things that carry the id of the instance that made them: a
// runtime its containers, a queue its claims. Implementations are safe for
// concurrent use.
type Holder interface {
	// Leftovers lists what carries the id. An error says that it can't be known
	// now.
	Leftovers(ctx context.Context, instance string) ([]Leftover, error)
	// Remove stops and removes one of them, or hands it back. It returns nil
	// once it is gone, also when it was gone before.
	Remove(ctx context.Context, l Leftover) error
}

// A SweepConfig says what a [Sweep] goes through.
type SweepConfig struct {
	// Folder is the folder of the instances' files. Required.
	Folder string
	// Holders are asked in this order: a queue after the runtimes, so that a
	// claim is handed back only when its container is gone.
	Holders []Holder
	// DryRun lists and removes nothing.
	DryRun bool
}

// Sweep removes what dead instances of this host left behind, and says what
// became of each thing. An instance is dead when its file can be locked; pids
// and clocks decide nothing, so that two workers of one host never touch each
// other's. What can't be removed keeps its instance's file, and the next Sweep
// reports it again. The error says which holders could not be asked.
func Sweep(ctx context.Context, config SweepConfig) ([]Leftover, error) {
	names, err := os.ReadDir(config.Folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep: read the folder of the instances: %w", withoutPath(err))
	}
	var all []Leftover
	var failed []error
	for _, name := range names {
		left, err := config.sweepFile(ctx, name.Name())
		all = append(all, left...)
		if err != nil {
			failed = append(failed, fmt.Errorf("sweep instance %.80q: %w", name.Name(), err))
		}
	}
	return all, errors.Join(failed...)
}

// sweepFile sweeps the instance whose file has that name, and removes the file
// last. It leaves alone one that lives and what is no instance's.
func (c SweepConfig) sweepFile(ctx context.Context, name string) ([]Leftover, error) {
	if !instance.IsID(name) && !instance.IsTemp(name) {
		return nil, nil
	}
	file, err := instance.Take(c.Folder, name)
	if errors.Is(err, instance.ErrHeld) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	all, err := c.sweepOne(ctx, &Instance{file: file, folder: c.Folder})
	left := c.DryRun || err != nil || slices.ContainsFunc(all, func(l Leftover) bool { return !l.Gone })
	return all, errors.Join(err, withoutPath(file.Close(left)))
}

// sweepOne removes what one dead instance left.
func (c SweepConfig) sweepOne(ctx context.Context, dead *Instance) ([]Leftover, error) {
	var all []Leftover
	stuck := map[string]bool{} // jobs of which something is still there
	for _, holder := range c.Holders {
		left, err := holder.Leftovers(ctx, dead.ID())
		if err != nil {
			// What it holds may still run: nothing after it may be touched.
			return all, err
		}
		for _, l := range left {
			l.Instance = dead.ID()
			c.remove(ctx, holder, &l, stuck)
			all = append(all, l)
		}
	}
	if _, err := os.Lstat(dead.files()); err == nil {
		l := Leftover{Instance: dead.ID(), Kind: "files", Name: filepath.Base(dead.files())}
		if !c.DryRun {
			l.Err = withoutPath(os.RemoveAll(dead.files()))
			l.Gone = l.Err == nil
		}
		all = append(all, l)
	}
	return all, nil
}

func (c SweepConfig) remove(ctx context.Context, holder Holder, l *Leftover, stuck map[string]bool) {
	switch {
	case c.DryRun:
	case l.Job != "" && stuck[l.Job]:
		l.Err = errors.New("something else of its job is still there")
	default:
		l.Err = holder.Remove(ctx, *l)
		l.Gone = l.Err == nil
		if !l.Gone && l.Job != "" {
			stuck[l.Job] = true
		}
	}
}

// The kinds of a client's leftovers.
const (
	kindContainer = "container"
	kindNetwork   = "network"
)

// Leftovers lists the containers and networks of an instance. It implements
// [Holder].
func (c *client) Leftovers(ctx context.Context, instance string) ([]Leftover, error) {
	containers, err := c.list(ctx, Labels{Instance: instance})
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	networks, err := c.networks(ctx, "label="+labelInstance+"="+instance)
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w: %w", ErrUnavailable, err)
	}
	var all []Leftover
	for _, f := range containers {
		all = append(all, Leftover{Instance: instance, Kind: kindContainer, Name: f.Name, Job: f.Labels.Job})
	}
	for _, name := range networks {
		all = append(all, Leftover{Instance: instance, Kind: kindNetwork, Name: name})
	}
	return all, nil
}

// Remove stops and removes a container, or removes a network, of an instance.
// It implements [Holder].
func (c *client) Remove(ctx context.Context, l Leftover) error {
	if l.Kind != kindNetwork {
		return c.Stop(ctx, l.Name)
	}
	if there, err := c.networkExists(ctx, l.Name); err == nil && !there {
		return nil
	}
	return c.removeNetwork(ctx, l.Name)
}
