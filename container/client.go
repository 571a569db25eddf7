package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A DockerConfig says how the client of a runtime is called. A [PodmanConfig] is
// the same.
type DockerConfig struct {
	// Instance is the worker process that owns every container. Required.
	Instance *Instance
	// Client is the client program, a path or a name that PATH finds. Defaults
	// to docker, or podman.
	Client string
	// Daemon is the address of the daemon. Defaults to what DOCKER_HOST, or
	// CONTAINER_HOST, says, else to the client's own default. Contexts and
	// proxies of the user's own configuration are not read.
	Daemon string
	// Host is this host's name in the labels of a run whose Spec names none.
	Host string
	// Prefix begins the name of a run whose Spec names none. Defaults to
	// "dispatch-".
	Prefix string
	// Grace is how long a job has to end after SIGTERM, in whole seconds.
	// Defaults to 10 s.
	Grace time.Duration
	// Log takes what is worth a note. Defaults to nothing.
	Log *slog.Logger
}

// A PodmanConfig says how Podman's client is called.
type PodmanConfig = DockerConfig

// Bounds of time. Tests of what never ends shorten them.
type bounds struct {
	call  time.Duration // one call of the client that does not run a job
	kill  time.Duration // from the end of the grace to giving a stop up
	ask   time.Duration // how long a silent daemon is asked how a run ended
	gone  time.Duration // how long a removal may take
	pipe  time.Duration // how long a pipe is read after the client's end
	again time.Duration // between two tries
}

var defaultBounds = bounds{
	call:  30 * time.Second,
	kill:  30 * time.Second,
	ask:   30 * time.Second,
	gone:  30 * time.Second,
	pipe:  5 * time.Second,
	again: 100 * time.Millisecond,
}

// A client calls the command line client of a runtime.
type client struct {
	config DockerConfig
	kind   kind
	path   string
	env    []string
	bounds bounds

	mu     sync.Mutex
	facts  *Facts           // nil: to be asked for
	images map[string]Image // by id
}

// A kind is what differs between the runtimes that have a client.
type kind struct {
	name    string
	podman  bool
	address string // the variable that holds the daemon's address
	// config is the variable that names the client's configuration folder, ""
	// where an empty folder would take the runtime's own settings away.
	config     string
	parseFacts func(info []byte) (Facts, error)
}

func newClient(kind kind, config DockerConfig) (*client, error) {
	if config.Instance == nil {
		return nil, fmt.Errorf("make a %s runtime: Instance is required", kind.name)
	}
	if config.Grace < 0 {
		return nil, fmt.Errorf("make a %s runtime: Grace of %v is negative", kind.name, config.Grace)
	}
	if config.Client == "" {
		config.Client = kind.name
	}
	if config.Prefix == "" {
		config.Prefix = "dispatch-"
	}
	if config.Grace == 0 {
		config.Grace = 10 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	path, err := exec.LookPath(config.Client)
	if err != nil {
		return nil, fmt.Errorf("make a %s runtime: find its client %.80q: %w: %w", kind.name, config.Client, ErrUnavailable, errors.Unwrap(err))
	}
	var own []string
	if kind.config != "" {
		own = append(own, kind.config+"="+config.Instance.clientFolder())
	}
	if config.Daemon != "" {
		own = append(own, kind.address+"="+config.Daemon)
	}
	return &client{
		config: config,
		kind:   kind,
		path:   path,
		env:    clientEnv(own...),
		bounds: defaultBounds,
		images: map[string]Image{},
	}, nil
}

// command returns a call of the client in a process group of its own: a Ctrl-C
// at the worker's terminal must not reach it.
func (c *client) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.path, args...)
	cmd.Env = c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = c.bounds.pipe
	return cmd
}

// A callError says that a call of the client failed. Calls that run a job never
// make one: what they print is the job's.
type callError struct {
	call string
	said string // the client's last line on stderr, bounded
	err  error
}

func (e *callError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: %v", e.call, e.err)
	}
	return fmt.Sprintf("%s: %v: %q", e.call, e.err, e.said)
}

func (e *callError) Unwrap() error { return e.err }

// call runs the client to its end, bounded in time, and returns what it printed.
func (c *client) call(ctx context.Context, args ...string) ([]byte, error) {
	return c.callFor(ctx, 0, args...)
}

// callFor is call for what takes a while longer.
func (c *client) callFor(ctx context.Context, longer time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.bounds.call+longer)
	defer cancel()
	var stdout bytes.Buffer
	var stderr head
	cmd := c.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	fail := func(err error) error {
		lines := strings.Split(strings.TrimSpace(string(stderr.kept)), "\n")
		last := lines[len(lines)-1]
		verb := strings.Join(args[:min(len(args), 2)], " ")
		return &callError{c.kind.name + " " + verb, last[:min(len(last), 200)], err}
	}
	if err := cmd.Start(); err != nil {
		return nil, fail(fmt.Errorf("%w: %w", ErrUnavailable, withoutPath(err)))
	}
	unwatch := context.AfterFunc(ctx, func() { killGroup(cmd) })
	err := cmd.Wait()
	if !unwatch() {
		return stdout.Bytes(), fail(context.Cause(ctx))
	}
	if err != nil {
		return stdout.Bytes(), fail(err)
	}
	return stdout.Bytes(), nil
}

// killGroup ends a call of the client and whatever it started.
func killGroup(cmd *exec.Cmd) {
	// It fails only for a group that has ended.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
