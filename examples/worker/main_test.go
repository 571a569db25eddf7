package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		main() // this program is the supervisor of the jobs that a test runs in it
	}
	testscript.Main(m, map[string]func(){"worker": main})
}

// TestScripts types commands as an operator does and holds what they print and
// how they exit. It needs nothing but this program; scripts that need Docker are
// in TestDockerScripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// No daemon of this machine is to be found by accident.
			env.Setenv("DOCKER_HOST", "unix://"+env.WorkDir+"/no-daemon.sock")
			env.Setenv("PATH", os.Getenv("PATH"))
			return nil
		},
	})
}
