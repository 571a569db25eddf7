package supervisor

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// startFlag, alone before the command, asks for the second image of the program:
// the one that becomes the command.
const startFlag = "--start"

// Main runs the supervisor that args describe and returns the process's exit
// code: flags, then the command and its arguments. args is the end of [os.Args];
// what stands before it there is repeated when the program starts its second
// image.
//
//	--key-stdin       the first line of standard input is the key
//	--runner          the command signs its own line: it gets the key as well
//	--fail-code=N     exit code of a command that failed by itself (1..255)
//	--deadline=D      kill a command that runs for longer (30m, 90s)
//	--exit-file=PATH  write the exit line to this file as well
//	--alive-fd=N      kill the command once this descriptor reads end of file
//	--shared-cgroup   report no usage: the cgroup is not this run's alone
func Main(args []string) int {
	if len(args) > 1 && args[0] == startFlag {
		return becomeCommand(args[1:])
	}
	config, err := parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: read arguments: %v\n", err)
		return codeFailed
	}
	if before := len(os.Args) - len(args); before > 1 {
		config.Self = os.Args[1:before]
	}
	return config.Run()
}

func parse(args []string) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("supervisor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&c.KeyStdin, "key-stdin", false, "")
	flags.BoolVar(&c.Runner, "runner", false, "")
	flags.IntVar(&c.FailCode, "fail-code", 0, "")
	flags.DurationVar(&c.Deadline, "deadline", 0, "")
	flags.StringVar(&c.ExitFile, "exit-file", "", "")
	flags.IntVar(&c.AliveFD, "alive-fd", 0, "")
	flags.BoolVar(&c.SharedCgroup, "shared-cgroup", false, "")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	c.Command = flags.Args()
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("no command is given; it stands after the flags")
	case c.Runner && !c.KeyStdin:
		return errors.New("--runner needs --key-stdin: there is no key to hand on")
	case c.FailCode < 0 || c.FailCode > 255:
		return fmt.Errorf("--fail-code=%d is not in 1..255", c.FailCode)
	case c.Deadline < 0:
		return fmt.Errorf("--deadline=%v is negative", c.Deadline)
	case c.AliveFD != 0 && c.AliveFD <= 2:
		return fmt.Errorf("--alive-fd=%d is not above 2", c.AliveFD)
	}
	return nil
}
