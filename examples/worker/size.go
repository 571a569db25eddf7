package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
)

var sizeCommand = command{
	name:    "size",
	summary: "show what a size becomes: shares, weights, cpu.max, command line",
	example: "  worker size -memory 512m -cpus 0.5",
	run:     size,
}

// A sizing is the JSON form of what size prints.
type sizing struct {
	MemMiB   jobsize.MiB    `json:"memMiB"`
	CPUCenti jobsize.Centi  `json:"cpuCenti"`
	Source   jobsize.Source `json:"source"`
	Shares   int64          `json:"shares"`
	Weights  []int64        `json:"weights"` // cpu.weight: linear mapping, then curved; one where they agree
	CPUMax   string         `json:"cpuMax"`  // of the ceiling that all jobs share
	Argv     []string       `json:"argv"`
}

func size(_ context.Context, p *program, args []string) error {
	f := p.flags()
	memory := f.String("memory", "", "memory of the job, such as 512m or 4g (default "+jobsize.DefaultMem.String()+")")
	cpus := f.String("cpus", "", "CPUs of the job, such as 0.5 or 2 (default "+jobsize.DefaultCPU.String()+")")
	ceiling := f.String("cpu-ceiling", "", "CPUs that no job may exceed (default none)")
	asJSON := f.Bool("json", false, "print JSON")
	if _, err := p.parse(f, args, 0, 0); err != nil {
		return err
	}
	s, err := jobsize.Resolve(jobsize.Request{Memory: *memory, CPUs: *cpus}, jobsize.Request{})
	if err != nil {
		return usagef("%w", err)
	}
	limit, err := cpuLimit("-cpu-ceiling", *ceiling, jobsize.Off())
	if err != nil {
		return err
	}
	spec := container.Spec{Image: "IMAGE", Job: "JOB", Attempt: 1, Size: s, CPUs: limit}
	command, err := spec.Command(container.Dialect{CgroupV2: true})
	if err != nil {
		return fmt.Errorf("building the command line: %w", err)
	}
	out := sizing{
		MemMiB: s.Mem, CPUCenti: s.CPU, Source: s.Source, Shares: s.Shares(),
		Weights: jobsize.Weights(s.Shares()), CPUMax: jobsize.CPUMax(limit), Argv: command.Argv(),
	}
	if *asJSON {
		return p.printJSON(out)
	}
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "memory\t%v\t%d bytes, no swap past it\n", s.Mem, s.Mem.Bytes())
	fmt.Fprintf(t, "cpus\t%v\ta weight against other jobs, no bound\n", s.CPU)
	fmt.Fprintf(t, "source\t%s\n", s.Source)
	fmt.Fprintf(t, "cpu shares\t%d\n", out.Shares)
	fmt.Fprintf(t, "cpu.weight\t%s\t%s\n", strings.Trim(fmt.Sprint(out.Weights), "[]"), "linear mapping, then curved")
	fmt.Fprintf(t, "cpu.max\t%s\tthe ceiling all jobs share\n", out.CPUMax)
	fmt.Fprintf(t, "command\t%s\n", strings.Join(out.Argv, " "))
	return t.Flush()
}
