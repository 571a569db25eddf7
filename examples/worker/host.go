package main

import (
	"context"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// hostFlags are the flags of every command that runs jobs.
type hostFlags struct {
	data         string
	runtime      string
	docker       string
	podman       string
	name         string
	supervisor   string
	cgroupParent string
	logLimit     int64
	verbose      bool
}

func (h *hostFlags) bind(f *flag.FlagSet) {
	bindData(f, &h.data)
	f.StringVar(&h.runtime, "runtime", "auto", "where images run: auto, docker, podman or none; auto takes Docker, or Podman where that answers")
	f.StringVar(&h.docker, "docker", "docker", "the Docker `client`, a path or a name in PATH")
	f.StringVar(&h.podman, "podman", "podman", "the Podman `client`, a path or a name in PATH")
	f.StringVar(&h.name, "host", "", "this host's `name` in records (default the host name)")
	f.StringVar(&h.supervisor, "supervisor", "", "a static supervisor `program` to mount into images that have none (default this program)")
	f.StringVar(&h.cgroupParent, "cgroup-parent", "", "a cgroup v2 `directory` that was delegated to this program: bounds for jobs without an image")
	f.Int64Var(&h.logLimit, "log-limit", 1<<30, "most `bytes` of a run's log")
	f.BoolVar(&h.verbose, "v", false, "log every step")
}

// bindData adds the flag that names the folder everything is kept in.
func bindData(f *flag.FlagSet, data *string) {
	f.StringVar(data, "data", "dispatch-data", "the `folder` of the queue, the records and the logs")
}

func logsFolder(data string) string { return filepath.Join(data, "logs") }

// A host is what this host brings to its jobs.
type host struct {
	flags      hostFlags
	name       string
	records    *record.Store
	instance   *container.Instance
	instances  string // the folder of the instances
	venues     *venues
	supervisor []string // mounted into images that have none
	log        *slog.Logger
}

// openHost makes the data folder and finds the runtimes. close gives everything
// back.
func (p *program) openHost(flags hostFlags) (_ *host, err error) {
	h := &host{flags: flags, instances: filepath.Join(flags.data, "instances"), log: p.logger(flags.verbose)}
	if h.name, err = hostName(flags.name); err != nil {
		return nil, err
	}
	if h.supervisor, err = supervisorOf(flags.supervisor); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(flags.data, 0o700); err != nil {
		return nil, unavailablef("making the data folder: %w", err)
	}
	h.records = &record.Store{Dir: logsFolder(flags.data), Logger: h.log}
	if h.instance, err = container.NewInstance(h.instances); err != nil {
		return nil, unavailablef("%w", err)
	}
	if h.venues, err = h.openVenues(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *host) openVenues() (*venues, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if parent := h.flags.cgroupParent; parent != "" {
		if err := cgroup.EnableControllers(parent); err != nil {
			h.log.Warn("cgroup_controllers_off", "error", err) // what is missing then is an error below
		}
	}
	process, err := container.NewProcess(container.ProcessConfig{
		Supervisor: []string{self, "supervise"}, CgroupParent: h.flags.cgroupParent,
		Instance: h.instance, Host: h.name,
	})
	if err != nil {
		return nil, unavailablef("%w", err)
	}
	v := &venues{process: process, log: h.log}
	config := container.DockerConfig{Instance: h.instance, Host: h.name, Log: h.log}
	docker := func() (venue, error) {
		config := config
		config.Client = h.flags.docker
		return container.NewDocker(config)
	}
	podman := func() (venue, error) {
		config := config
		config.Client = h.flags.podman
		return container.NewPodman(config)
	}
	switch h.flags.runtime {
	case "auto":
		v.open = []func() (venue, error){docker, podman}
	case "docker":
		v.open = []func() (venue, error){docker}
	case "podman":
		v.open = []func() (venue, error){podman}
	case "none":
	default:
		return nil, usagef("flag -runtime is %.64q, want auto, docker, podman or none", h.flags.runtime)
	}
	return v, nil
}

// sweep removes what workers left that died on this host.
func (h *host) sweep(ctx context.Context) {
	left, err := container.Sweep(ctx, container.SweepConfig{Folder: h.instances, Holders: h.venues.holders(ctx)})
	for _, l := range left {
		h.log.Warn("leftover_swept", "kind", l.Kind, "name", l.Name, "instance", l.Instance, "gone", l.Gone, "error", l.Err)
	}
	if err != nil {
		h.log.Error("sweep_failed", "error", err)
	}
}

// defaultSize is the size of a job that asks for none: the package's default, or
// what this host has where that is less, so that a small host runs such jobs at
// all.
func (h *host) defaultSize(ctx context.Context, budget jobsize.Budget) jobsize.Request {
	facts, err := h.venues.Facts(ctx)
	if err != nil {
		return jobsize.Request{}
	}
	of := jobsize.FactsBudget(facts.Memory, facts.CPUs)
	mem, cpu := jobsize.DefaultMem, jobsize.DefaultCPU
	for _, limit := range []jobsize.Limit{of.Mem, budget.Mem} {
		if n, ok := limit.Value(); ok {
			mem = min(mem, jobsize.MiB(n))
		}
	}
	for _, limit := range []jobsize.Limit{of.CPU, budget.CPU} {
		if n, ok := limit.Value(); ok {
			cpu = min(cpu, jobsize.Centi(n))
		}
	}
	return jobsize.Request{Memory: mem.String(), CPUs: cpu.String()}
}

// running lists the containers that this process runs now.
func (h *host) running(ctx context.Context) ([]container.State, error) {
	return h.venues.List(ctx, container.Labels{Instance: h.instance.ID()})
}

// openLog opens the log that takes a job's output.
func (h *host) openLog(jobID string) io.WriteCloser {
	return h.records.OpenLog(jobID, record.LogOptions{Enabled: true, MaxBytes: h.flags.logLimit})
}

func (h *host) close() error { return h.instance.Close() }

// logger writes what is worth a look, and every step when it is to be verbose.
func (p *program) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
}

// hostName returns the given name, or this host's without its domain.
func hostName(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name: %w; give one with -host", err)
	}
	name, _, _ = strings.Cut(name, ".")
	return name, nil
}

// supervisorOf returns the command that images without a supervisor get: the
// given program, or this one where it is static. None is "".
func supervisorOf(given string) ([]string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err != nil {
			return nil, fmt.Errorf("finding the supervisor: %w", err)
		}
		if !isStatic(path) {
			return nil, usagef("flag -supervisor is %.200q, want a static program: build one with CGO_ENABLED=0", given)
		}
		return []string{path}, nil
	}
	self, err := os.Executable()
	if err != nil || !isStatic(self) {
		return nil, nil
	}
	return []string{self, "supervise"}, nil
}

// isStatic reports whether a program needs no loader of its own, which an image
// might not have.
func isStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// sweepEvery is how often a worker looks for what others left that died.
const sweepEvery = time.Minute
