package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// flags returns the flag set of the running command. What it prints for -h goes
// to standard output; errors are returned, never printed.
func (p *program) flags() *flag.FlagSet {
	f := flag.NewFlagSet(p.command.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// parse reads the environment's DISPATCH_* variables and then the arguments into
// the flags, which may also stand behind an argument. It returns the arguments,
// and refuses a number of them outside least..most.
func (p *program) parse(f *flag.FlagSet, args []string, least, most int) ([]string, error) {
	if err := p.fromEnvironment(f); err != nil {
		return nil, err
	}
	var positional []string
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			p.usage(f)
			return nil, err
		} else if err != nil {
			return nil, usagef("%w; worker help %s lists the flags", err, p.command.name)
		}
		if f.NArg() == 0 {
			break
		}
		positional = append(positional, f.Arg(0))
		args = f.Args()[1:]
	}
	if n := len(positional); n < least || n > most {
		return nil, usagef("got %d arguments, want: worker %s", n, p.synopsis())
	}
	return positional, checkNumbers(f)
}

// checkNumbers refuses what no flag can mean: a number or a duration below 0, and
// 0 where that many can't be done. A default stands.
func checkNumbers(f *flag.FlagSet) (err error) {
	f.VisitAll(func(flag *flag.Flag) {
		text := flag.Value.String()
		switch {
		case text == flag.DefValue || err != nil:
		case flag.Name == "attempts" && text == "0", flag.Name == "log-limit" && text == "0":
			err = usagef("flag -%s is 0, want 1 or more", flag.Name)
		case isNumber(flag) && strings.HasPrefix(text, "-"):
			err = usagef("flag -%s is %s, want 0 or more", flag.Name, text)
		}
	})
	return err
}

func isNumber(f *flag.Flag) bool {
	switch f.Value.(flag.Getter).Get().(type) {
	case int, int64, time.Duration:
		return true
	}
	return false
}

func (p *program) fromEnvironment(f *flag.FlagSet) error {
	var err error
	f.VisitAll(func(flag *flag.Flag) {
		name := "DISPATCH_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value := p.getenv(name)
		if value == "" || err != nil {
			return
		}
		if setErr := flag.Value.Set(value); setErr != nil {
			err = usagef("environment variable %s: bad value %.64q: %v", name, value, setErr)
		}
	})
	return err
}

func (p *program) usage(f *flag.FlagSet) {
	fmt.Fprintf(p.stdout, "usage: worker %s\n\n%s.\n\n", p.synopsis(), p.command.summary)
	if p.command.note != "" {
		fmt.Fprintf(p.stdout, "%s\n\n", p.command.note)
	}
	f.SetOutput(p.stdout)
	f.PrintDefaults()
	fmt.Fprintf(p.stdout, "\nexample:\n%s\n", p.command.example)
}

func (p *program) synopsis() string {
	return strings.TrimSpace(p.command.name + " [FLAG]... " + p.command.args)
}
