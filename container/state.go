package container

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// errGone says that a container which was there is there no more.
var errGone = errors.New("container is gone")

// A found container is its State and what removing it needs.
type found struct {
	State
	run     string // the label of its Run
	network string // that it is on
	parent  string // its cgroup's, as the runtime recorded it
}

// List returns the containers that carry an instance's id and whose labels match
// every field of the filter.
func (c *client) List(ctx context.Context, filter Labels) ([]State, error) {
	all, err := c.list(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var states []State
	for _, f := range all {
		states = append(states, f.State)
	}
	return states, nil
}

// Inspect returns the state of one container. It returns ErrUnknown, and
// ErrUnavailable when the runtime can't say.
func (c *client) Inspect(ctx context.Context, name string) (State, error) {
	f, err := c.find(ctx, name)
	if err != nil {
		return State{}, fmt.Errorf("inspect container %.200q: %w", name, err)
	}
	return f.State, nil
}

// Stop stops and removes a container that carries an instance's id, and the
// network that was made for it. One that is gone is no error.
func (c *client) Stop(ctx context.Context, name string) error {
	f, err := c.find(ctx, name)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err == nil {
		err = c.stopAndRemove(ctx, f)
	}
	if err != nil {
		return fmt.Errorf("stop container %.200q: %w", name, err)
	}
	return nil
}

func (c *client) stopAndRemove(ctx context.Context, f found) error {
	if f.Labels.Instance == "" {
		return errors.New("it carries no instance's id: it is not ours to stop")
	}
	if err := c.stop(ctx, f.ID); err != nil {
		return err
	}
	if err := c.remove(ctx, f.ID); err != nil {
		return err
	}
	if f.network == f.Name {
		return c.removeNetwork(ctx, f.network)
	}
	return nil
}

// stop ends a container's processes: SIGTERM, the grace, SIGKILL. It returns nil
// once the runtime says that none runs.
func (c *client) stop(caller context.Context, id string) error {
	ctx, cancel := context.WithTimeout(caller, c.config.Grace+c.bounds.kill)
	defer cancel()
	f, err := c.byID(ctx, id)
	if errors.Is(err, errGone) || err == nil && !f.Running {
		return nil
	}
	grace := max(int(c.config.Grace/time.Second), 1)
	// What they say is of no account: a container that is gone is an error for
	// some versions and none for others. Only its state counts.
	_, _ = c.callFor(ctx, c.config.Grace, "stop", "--time="+strconv.Itoa(grace), id)
	for {
		// Asked once more when the time is up, in time of its own: what a slow
		// daemon has stopped is no orphan.
		f, err = c.byID(caller, id)
		if errors.Is(err, errGone) || err == nil && !f.Running {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it did not stop and may still run: %w", errors.Join(err, context.Cause(ctx)))
		}
		_, _ = c.call(ctx, "kill", id)
		pause(ctx, c.bounds.again)
	}
}

// remove removes a container with its anonymous volumes, and returns nil once
// the runtime says that it is gone.
func (c *client) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, c.bounds.gone)
	defer cancel()
	for {
		_, err := c.call(ctx, "rm", "--force", "--volumes", id)
		if err == nil {
			// Some versions say so of one that they do not know, or that
			// somebody else is removing: either way it is on its way out.
			return nil
		}
		if there, askErr := c.exists(ctx, "id="+id); askErr == nil && !there {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it could not be removed: %w", err)
		}
		pause(ctx, c.bounds.again)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// find returns the container of exactly that name, or of that id.
func (c *client) find(ctx context.Context, name string) (found, error) {
	if !containerName.MatchString(name) {
		return found{}, fmt.Errorf("it is no name: %w", ErrUnknown)
	}
	answer, err := c.call(ctx, "container", "inspect", name)
	all, readErr := readContainers(answer)
	for _, f := range all {
		// An id that only begins with the name is another container's.
		if f.Name == name || f.ID == name {
			return f, nil
		}
	}
	if err == nil && readErr != nil {
		return found{}, fmt.Errorf("%w: %w", ErrUnavailable, readErr)
	}
	// The client's code does not tell a container that is not there from a
	// daemon that is not. The name is a pattern there, and matches substrings.
	there, askErr := c.exists(ctx, "name=^/?"+regexp.QuoteMeta(name)+"$")
	switch {
	case askErr != nil:
		return found{}, fmt.Errorf("%w: %w", ErrUnavailable, askErr)
	case there:
		return found{}, fmt.Errorf("%w: it is listed and can't be inspected: %w", ErrUnavailable, errors.Join(err, readErr))
	}
	return found{}, ErrUnknown
}

// byID returns the container of an id. It returns errGone when the runtime
// knows none; any other error says that it can't be asked.
func (c *client) byID(ctx context.Context, id string) (found, error) {
	answer, err := c.call(ctx, "container", "inspect", id)
	all, readErr := readContainers(answer)
	if len(all) == 1 && all[0].ID == id {
		return all[0], nil
	}
	there, askErr := c.exists(ctx, "id="+id)
	if askErr == nil && !there {
		return found{}, errGone
	}
	return found{}, errors.Join(err, readErr, askErr, errors.New("it can't be inspected"))
}

// exists reports whether any container, running or not, passes a filter.
func (c *client) exists(ctx context.Context, filter string) (bool, error) {
	ids, err := c.ids(ctx, filter)
	return len(ids) > 0, err
}

// ids returns the ids of the containers that pass every filter.
func (c *client) ids(ctx context.Context, filters ...string) ([]string, error) {
	args := []string{"ps", "--all", "--no-trunc", "--quiet"}
	for _, filter := range filters {
		args = append(args, "--filter="+filter)
	}
	answer, err := c.call(ctx, args...)
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(answer))
	for _, id := range ids {
		if !fullID.MatchString(id) {
			return nil, fmt.Errorf("read its list: %.80q is no id", id)
		}
	}
	return ids, nil
}

func (c *client) list(ctx context.Context, filter Labels) ([]found, error) {
	filters := []string{"label=" + labelInstance}
	for _, label := range filter.pairs() {
		if label[1] != "" {
			filters = append(filters, "label="+label[0]+"="+label[1])
		}
	}
	ids, err := c.ids(ctx, filters...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var all []found
	for _, id := range ids {
		f, err := c.byID(ctx, id)
		if errors.Is(err, errGone) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if filter.match(f.Labels) {
			all = append(all, f)
		}
	}
	return all, nil
}

// readContainers reads the answer of container inspect. Both runtimes write the
// same shape.
func readContainers(answer []byte) ([]found, error) {
	value, err := jsonval.Parse(answer)
	if err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	list, _ := value.List()
	var all []found
	for _, item := range list {
		f, ok := readContainer(item)
		if !ok {
			return nil, errors.New("read its answer: it describes no container")
		}
		all = append(all, f)
	}
	return all, nil
}

func readContainer(v jsonval.Value) (found, bool) {
	o, _ := v.Object()
	state, _ := o.Get("State").Object()
	config, _ := o.Get("Config").Object()
	host, _ := o.Get("HostConfig").Object()
	running, ok := state.Get("Running").Bool()
	code, hasCode := state.Get("ExitCode").Int()
	started, hasStart := instant(state.Get("StartedAt"))
	if !ok || !hasCode || !hasStart {
		return found{}, false
	}
	labels := stringMap(config.Get("Labels"))
	f := found{run: labels[labelRun], network: text(host.Get("NetworkMode")), parent: text(host.Get("CgroupParent"))}
	f.ID = text(o.Get("Id"))
	f.Name = strings.TrimPrefix(text(o.Get("Name")), "/")
	f.Labels = labelsOf(labels)
	f.Started = started
	f.Running = running || slices.Contains([]string{"running", "paused", "restarting", "stopping"}, text(state.Get("Status")))
	if pid, ok := state.Get("Pid").Count(); ok && f.Running {
		f.PID = int(pid)
	}
	if !f.Running {
		f.Ended, _ = instant(state.Get("FinishedAt"))
		f.Code = int(code)
		f.OOM, _ = state.Get("OOMKilled").Bool()
	}
	return f, fullID.MatchString(f.ID)
}

// instant reads an instant; the runtimes' own zero is the zero Time.
func instant(v jsonval.Value) (time.Time, bool) {
	s, ok := v.Text()
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, false
	}
	if t.Year() <= 1 {
		return time.Time{}, true
	}
	return t, true
}
