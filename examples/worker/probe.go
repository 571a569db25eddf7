package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
)

var probeCommand = command{
	name:    "probe",
	args:    "IMAGE",
	summary: "run containers as jobs are run, and show what this host really enforces",
	example: "  worker probe busybox\n" +
		"  worker probe -network private -memory 512m -cpus 0.5 -cpu-ceiling 1.5 busybox\n" +
		"  worker probe -json busybox",
	run: probe,
}

// A probed is the JSON form of what probe prints.
type probed struct {
	Runtime    string           `json:"runtime"` // docker or podman
	OK         bool             `json:"ok"`      // every property was read back and holds
	Properties []probedProperty `json:"properties"`
}

type probedProperty struct {
	Property container.Property `json:"property"`
	Verdict  cgroup.Verdict     `json:"verdict"`
	Why      string             `json:"why"` // what failed or was not read back, "" for nothing
	Values   []probedValue      `json:"values"`
}

type probedValue struct {
	Name    string         `json:"name"` // the kernel's
	Verdict cgroup.Verdict `json:"verdict"`
	Got     string         `json:"got"` // "" when nothing was read
	Want    string         `json:"want"`
}

// A prober is a runtime that can say what it enforces.
type prober interface {
	Probe(ctx context.Context, config container.ProbeConfig) (container.Report, error)
}

// probeFlags say what job the probe is.
type probeFlags struct {
	host                         hostFlags
	memory, cpus, ceiling        string
	user, network, parent, quota string
}

func probe(ctx context.Context, p *program, args []string) error {
	f := p.flags()
	var flags probeFlags
	flags.host.bind(f)
	f.StringVar(&flags.memory, "memory", "", "memory of the job, such as 512m (default "+jobsize.MinMem.String()+")")
	f.StringVar(&flags.cpus, "cpus", "", "CPUs of the job, such as 0.5 (default "+jobsize.MinCPU.String()+")")
	f.StringVar(&flags.ceiling, "cpu-ceiling", "", "CPUs that no job may exceed (default none)")
	f.StringVar(&flags.user, "user", "", "numeric `uid` or uid:gid of the job (default 65534:65534)")
	f.StringVar(&flags.network, "network", "", "none, private or a network's `name` (default none)")
	f.StringVar(&flags.parent, "parent", "", "the `cgroup` that jobs are to be under, such as dispatch.slice (default none)")
	f.StringVar(&flags.quota, "parent-cpus", "", "CPUs that -parent holds all jobs to (default not known)")
	asJSON := f.Bool("json", false, "print JSON")
	args, err := p.parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	config, err := flags.config(args[0])
	if err != nil {
		return err
	}
	h, err := p.openHost(flags.host)
	if err != nil {
		return err
	}
	out, err := h.probe(ctx, config)
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	if *asJSON {
		err = p.printJSON(out)
	} else {
		err = out.print(p.stdout)
	}
	if err == nil && !out.OK {
		err = errors.New("not every property was read back and holds; jobs on this host lack what is not ok above")
	}
	return err
}

// config says what the probe runs.
func (p *probeFlags) config(image string) (container.ProbeConfig, error) {
	ask := jobsize.Request{Memory: p.memory, CPUs: p.cpus}
	size, err := jobsize.Resolve(ask, jobsize.Request{Memory: jobsize.MinMem.String(), CPUs: jobsize.MinCPU.String()})
	if err != nil {
		return container.ProbeConfig{}, usagef("flags -memory and -cpus: %w", err)
	}
	config := container.ProbeConfig{Spec: container.Spec{
		Image: image, Size: size, User: p.user, Network: p.network, CgroupParent: p.parent,
	}}
	if config.Spec.CPUs, err = cpuLimit("-cpu-ceiling", p.ceiling, jobsize.Off()); err != nil {
		return container.ProbeConfig{}, err
	}
	config.Budget, err = cpuLimit("-parent-cpus", p.quota, jobsize.Limit{})
	return config, err
}

// cpuLimit reads a flag that bounds CPUs; without text it is none.
func cpuLimit(flag, text string, none jobsize.Limit) (jobsize.Limit, error) {
	if text == "" {
		return none, nil
	}
	c, err := jobsize.ParseCPUs(text)
	if err != nil {
		return jobsize.Limit{}, usagef("flag %s: %w", flag, err)
	}
	return jobsize.Known(int64(c)), nil
}

func (h *host) probe(ctx context.Context, config container.ProbeConfig) (probed, error) {
	if len(h.venues.open) == 0 {
		return probed{}, usagef("-runtime none runs no image, and a job without one has no walls to probe; name docker or podman")
	}
	runtime, err := h.venues.container(ctx)
	if err != nil {
		return probed{}, unavailablef("%w; start Docker or Podman", err)
	}
	facts, err := runtime.Facts(ctx)
	if err != nil {
		return probed{}, unavailablef("%w", err)
	}
	p, ok := runtime.(prober)
	if !ok {
		return probed{}, fmt.Errorf("%s can't be probed", facts.Runtime)
	}
	report, err := p.Probe(ctx, config)
	switch {
	case errors.Is(err, container.ErrImageMissing):
		return probed{}, usagef("%w; images are never pulled: pull or import it first, or name another one", err)
	case errors.Is(err, container.ErrRemote):
		return probed{}, unavailablef("%w; run probe on the daemon's own host", err)
	case errors.Is(err, container.ErrUnavailable), errors.Is(err, container.ErrTimeout):
		return probed{}, unavailablef("%w", err)
	case err != nil:
		return probed{}, err
	}
	return probedOf(facts.Runtime, report), nil
}

func probedOf(runtime string, report container.Report) probed {
	out := probed{Runtime: runtime, OK: report.OK(), Properties: []probedProperty{}}
	for _, check := range report {
		property := probedProperty{Property: check.Property, Verdict: check.Verdict, Why: check.Why, Values: []probedValue{}}
		for _, v := range check.Values {
			property.Values = append(property.Values, probedValue{v.Name, v.Verdict, v.Got, v.Want})
		}
		out.Properties = append(out.Properties, property)
	}
	return out
}

// print shows a line for each property and, indented, one for each value. What a
// container printed is not trusted with the terminal.
func (p probed) print(w io.Writer) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "PROPERTY\tVERDICT\tREAD\tWANT\n")
	for _, property := range p.Properties {
		fmt.Fprintf(t, "%s\t%s\t\t\n", property.Property, property.Verdict)
		if property.Why != "" && len(property.Values) == 0 {
			fmt.Fprintf(t, "  %s\t\t\t\n", printable([]byte(property.Why)))
		}
		for _, v := range property.Values {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", printable([]byte(v.Name)), v.Verdict, orDash(printable([]byte(v.Got))), v.Want)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s: %d of %d properties hold\n", p.Runtime, p.holding(), len(p.Properties))
	return err
}

func (p probed) holding() (n int) {
	for _, property := range p.Properties {
		if property.Verdict == cgroup.OK || property.Verdict == cgroup.Warned {
			n++
		}
	}
	return n
}
