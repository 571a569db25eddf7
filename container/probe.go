package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/jobsize"
)

// ErrRemote says that a daemon is not this host's own.
var ErrRemote = errors.New("daemon is not this host's")

// A Property is something that a host promises for every job.
type Property string

// The properties, in the order in which they are probed.
const (
	// Isolation: capabilities, no-new-privileges and the bounds of the size.
	Isolation Property = "isolation"
	NonRoot   Property = "nonRoot"
	// MountSet: exactly the mounts of the Spec, as writable as it says.
	MountSet Property = "mountSet"
	// LocalFolders: a file written inside is seen outside, and back.
	LocalFolders Property = "localFolders"
	// ImagePinning: an image that is not there is not pulled.
	ImagePinning Property = "imagePinning"
	// Ephemeral: of a run nothing is left for the next one of its name.
	Ephemeral Property = "ephemeral"
	// JobToJob: the networks of two jobs do not reach each other.
	JobToJob Property = "jobToJob"
	// CgroupParent: a job is under the cgroup that the venue runs jobs under.
	CgroupParent Property = "cgroupParent"
)

// A Check is what the probe of one property came to.
type Check struct {
	Property Property
	// Verdict is cgroup.OK, Warned, Failed or NotReadBack, which never counts
	// as a pass.
	Verdict cgroup.Verdict
	// Values are what was read back, one by one.
	Values []cgroup.Finding
	// Why says in words what failed or could not be read.
	Why string
}

// A Report is what a host really enforces.
type Report []Check

// OK reports whether every property was read back and holds.
func (r Report) OK() bool {
	return len(r) > 0 && !slices.ContainsFunc(r, func(c Check) bool {
		return c.Verdict != cgroup.OK && c.Verdict != cgroup.Warned
	})
}

// A ProbeConfig says what a probe runs.
type ProbeConfig struct {
	// Spec is a job as the host is to run them: its image, size, user, network
	// and cgroup parent. The image must have sh, cat, and for JobToJob nc and
	// ip, under PATH. The probe brings its own command, name and mounts.
	Spec Spec
	// Budget is the CPU budget that the cgroup parent holds all jobs to, in
	// hundredths of a CPU.
	Budget jobsize.Limit
	// Timeout bounds the whole probe. Defaults to 2 minutes.
	Timeout time.Duration
}

// A probe is one probe while it runs.
type probe struct {
	*client
	spec   Spec
	budget jobsize.Limit
}

// Probe runs containers that are built as every job's is, reads back what they
// got, and removes them. The daemon must be of this host; another one is
// ErrRemote. The error says that the probe as a whole could not be made.
func (c *client) Probe(ctx context.Context, config ProbeConfig) (Report, error) {
	report, err := c.probe(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", c.kind.name, err)
	}
	return report, nil
}

func (c *client) probe(ctx context.Context, config ProbeConfig) (Report, error) {
	if !c.isLocal() {
		return nil, ErrRemote
	}
	if config.Timeout == 0 {
		config.Timeout = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, config.Timeout, ErrTimeout)
	defer cancel()
	if _, err := c.Image(ctx, config.Spec.Image); err != nil {
		return nil, err
	}
	p := c.newProbe(config)
	var report Report
	for _, part := range []func(context.Context) []Check{
		p.inside, p.localFolders, p.imagePinning, p.ephemeral, p.jobToJob, p.cgroupParent,
	} {
		report = append(report, part(ctx)...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return report, nil
}

func (c *client) newProbe(config ProbeConfig) probe {
	p := probe{client: c, spec: config.Spec, budget: config.Budget}
	p.spec.Job, p.spec.Attempt = "probe", 1
	// Its own commands are run as they are.
	p.spec.Supervisor, p.spec.Deadline, p.spec.PlainCommand = nil, 0, false
	return p
}

// isLocal reports whether the client talks to a daemon of this host.
func (c *client) isLocal() bool {
	for _, setting := range slices.Backward(c.env) {
		if address, ok := strings.CutPrefix(setting, c.kind.address+"="); ok && address != "" {
			return strings.HasPrefix(address, "unix://") || strings.HasPrefix(address, "/")
		}
	}
	return true
}

// shell runs a script as a job and returns what it printed on both streams.
func (p probe) shell(ctx context.Context, script string, change ...func(*Spec)) (string, Result, error) {
	spec := p.script(script, change...)
	var out strings.Builder
	result, err := p.Run(ctx, spec, IO{Log: &out})
	return out.String(), result, err
}

func (p probe) script(script string, change ...func(*Spec)) Spec {
	spec := p.spec
	spec.Name = NewName(p.config.Prefix+"probe-", "probe", 1)
	spec.Entrypoint, spec.Args = "sh", []string{"-c", script}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

// during runs a script that prints "ready" and an answer on one line and then
// stays, and calls f with the answer while it does.
func (p probe) during(ctx context.Context, script string, f func(name, answer string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	spec := p.script(script)
	out := &readyWriter{ready: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() {
		result, err := p.Run(ctx, spec, IO{Log: out})
		if err == nil && !result.Aborted {
			err = fmt.Errorf("it ended with code %d before it was ready", result.Code)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case answer := <-out.ready:
		f(spec.Name, answer)
		cancel(ErrCancelled)
		return <-ended
	}
}

// A readyWriter waits for a line "ready ANSWER".
type readyWriter struct {
	text  []byte
	ready chan string
}

func (w *readyWriter) Write(b []byte) (int, error) {
	if room := 64<<10 - len(w.text); room > 0 {
		w.text = append(w.text, b[:min(len(b), room)]...)
	}
	for line := range strings.Lines(string(w.text)) {
		if answer, ok := strings.CutPrefix(line, "ready"); ok && strings.HasSuffix(answer, "\n") {
			select {
			case w.ready <- strings.TrimSpace(answer):
			default:
			}
			break
		}
	}
	return len(b), nil
}

func failed(p Property, why string) Check {
	return Check{Property: p, Verdict: cgroup.Failed, Why: why}
}

func unread(p Property, why string) Check {
	return Check{Property: p, Verdict: cgroup.NotReadBack, Why: why}
}

// judged is a check by its values: a failed one fails it, one that was not read
// back leaves it open.
func judged(p Property, values []cgroup.Finding) Check {
	c := Check{Property: p, Verdict: cgroup.OK, Values: values}
	var why []string
	for _, v := range values {
		switch {
		case v.Verdict == cgroup.Failed:
			c.Verdict = cgroup.Failed
		case v.Verdict == cgroup.NotReadBack && c.Verdict == cgroup.OK:
			c.Verdict = cgroup.NotReadBack
		}
		if v.Verdict != cgroup.OK {
			why = append(why, fmt.Sprintf("%s is %.80q, not %s", v.Name, v.Got, v.Want))
		}
	}
	c.Why = strings.Join(why, "; ")
	return c
}
