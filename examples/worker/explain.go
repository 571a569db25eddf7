package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/worker"
)

var explainCommand = command{
	name:    "explain",
	args:    "LOG",
	summary: "show which exit line of a run log decides, and what the run comes to",
	example: "  worker explain dispatch-data/logs/my-job.log\n" +
		"  worker explain -container-exit 137 -memory-limit 512m -key-file key my-job.log\n" +
		"  docker logs my-job 2>&1 | worker explain -container-exit 2 -json -",
	run: explain,
}

// An explanation is the JSON form of what explain prints.
type explanation struct {
	Auth       exit.Auth   `json:"auth"` // "" unchecked, verified, unverified
	Candidates []candidate `json:"candidates"`
	Fields     []field     `json:"fields"`
	Line       *exit.Line  `json:"line"`
	Run        *classified `json:"run"` // null without -container-exit
}

type candidate struct {
	Line    int          `json:"line"`
	Finding exit.Finding `json:"finding"`
	Text    string       `json:"text"` // quoted and bounded: it is untrusted
}

type field struct {
	Name string `json:"name"`
	Kept bool   `json:"kept"`
	Why  string `json:"why,omitempty"` // why a value was dropped, "" when the line has none
}

type classified struct {
	Class       worker.Class `json:"class"`
	Reason      exit.Reason  `json:"reason"`
	Why         exit.Word    `json:"why"`
	Retry       bool         `json:"retry"`
	CostTrusted bool         `json:"costTrusted"`
	Rule        string       `json:"rule"` // which rule decided, in words
}

func explain(_ context.Context, p *program, args []string) error {
	f := p.flags()
	keyFile := f.String("key-file", "", "a `file` with the run's key; without one no signature is checked")
	code := f.Int("container-exit", -1, "the container's real exit `code`; without one nothing is classified")
	limit := f.String("memory-limit", "", "the run's memory `bound`, such as 512m")
	asJSON := f.Bool("json", false, "print JSON")
	args, err := p.parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	result, err := explainResult(*code, *limit)
	if err != nil {
		return err
	}
	key, err := p.readKey(*keyFile)
	if err != nil {
		return err
	}
	tail, err := p.readTail(args[0])
	if err != nil {
		return usagef("reading the log: %w", err)
	}

	e := exit.Parser{}.Explain(tail, key)
	out := explanation{Auth: e.Auth, Candidates: []candidate{}, Fields: []field{}, Line: e.Line}
	for _, c := range e.Candidates {
		out.Candidates = append(out.Candidates, candidate{c.Number, c.Finding, fmt.Sprintf("%.100q", c.Text)})
	}
	for _, f := range e.Fields {
		out.Fields = append(out.Fields, field(f))
	}
	if *code >= 0 {
		result.Line, result.Auth = e.Line, e.Auth
		o := worker.Classify(result)
		out.Run = &classified{o.Class, o.Reason, o.Why, o.Retry, o.CostTrusted, o.Rule}
	}
	if *asJSON {
		return p.printJSON(out)
	}
	return out.print(p.stdout)
}

// explainResult is the part of a run's result that the flags give.
func explainResult(code int, limit string) (container.Result, error) {
	if code > 255 {
		return container.Result{}, usagef("flag -container-exit is %d, want 0..255", code)
	}
	result := container.Result{Code: code}
	if limit != "" {
		memory, err := jobsize.ParseMemory(limit)
		if err != nil {
			return container.Result{}, usagef("flag -memory-limit: %w", err)
		}
		result.MemoryLimit = jobsize.Known(memory.Bytes())
	}
	return result, nil
}

func (p *program) readKey(name string) (exit.Key, error) {
	if name == "" {
		return exit.Key{}, nil
	}
	text, err := p.readInput(name, 1<<10)
	if err != nil {
		return exit.Key{}, usagef("reading the key file: %w", err)
	}
	key, err := exit.ParseKey(string(bytes.TrimSpace(text)))
	if err != nil {
		return exit.Key{}, usagef("key file: %w", err)
	}
	return key, nil
}

// readTail returns what the worker would have kept of a log's output.
func (p *program) readTail(name string) ([]byte, error) {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		// A log of many gigabytes is read from near its end.
		if _, err := f.Seek(-exit.DefaultTailSize, io.SeekEnd); err != nil {
			if _, err := f.Seek(0, io.SeekStart); err != nil && !errors.Is(err, os.ErrInvalid) {
				return nil, err
			}
		}
		in = f
	}
	tail := exit.NewTail(exit.DefaultTailSize)
	if _, err := io.Copy(tail, in); err != nil {
		return nil, err
	}
	return tail.Bytes(), nil
}

func (e explanation) print(w io.Writer) error {
	if e.Auth == exit.Unchecked {
		fmt.Fprintln(w, "signature: not checked (no -key-file)")
	} else {
		fmt.Fprintf(w, "signature: %s\n", e.Auth)
	}
	if len(e.Candidates) == 0 {
		fmt.Fprintln(w, "candidates: none, the tail holds nothing like an exit line")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range e.Candidates {
		fmt.Fprintf(t, "line %d\t%s\t%s\n", c.Line, c.Finding, c.Text)
	}
	if len(e.Candidates) > 0 && e.Line == nil {
		fmt.Fprint(t, "decisive\tnone of them\n")
	}
	var absent []string
	for _, f := range e.Fields {
		switch {
		case f.Kept:
			fmt.Fprintf(t, "field %s\tkept\n", f.Name)
		case f.Why != "":
			fmt.Fprintf(t, "field %s\tdropped: %s\n", f.Name, f.Why)
		default:
			absent = append(absent, f.Name)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(absent) > 0 {
		fmt.Fprintf(w, "not in the line: %s\n", strings.Join(absent, ", "))
	}
	return e.Run.print(w)
}

// print says what the run comes to, nothing where that was not asked for.
func (c *classified) print(w io.Writer) error {
	if c == nil {
		_, err := fmt.Fprintln(w, "outcome: not asked for (no -container-exit)")
		return err
	}
	trust := "not to be settled with: the line does not claim the real exit code"
	if c.CostTrusted {
		trust = "trusted: the line claims the real exit code"
	}
	retry := "no"
	if c.Retry {
		retry = "yes, while attempts are left"
	}
	_, err := fmt.Fprintf(w, "outcome: %s\nreason:  %s\nwhy:     %s\nrule:    %s\nretry:   %s\ncost:    %s\n",
		c.Class, orDash(string(c.Reason)), orDash(string(c.Why)), c.Rule, retry, trust)
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
