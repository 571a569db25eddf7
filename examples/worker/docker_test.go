package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/edgehero/dispatch/internal/lab"
)

// TestDockerScripts types commands that need a Docker daemon, with a static
// program as an operator has it.
func TestDockerScripts(t *testing.T) {
	host := lab.Docker(t)
	image := lab.Image(t, "docker")
	program := lab.Build(t, "github.com/edgehero/dispatch/examples/worker")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/docker",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DOCKER_HOST", host)
			env.Setenv("IMAGE", image)
			env.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
			return nil
		},
	})
}

// TestExitCodes holds the exit code of each way that a command can end.
func TestExitCodes(t *testing.T) {
	folder := t.TempDir()
	jobs := map[string]string{
		"ok": `["true"]`, "policy": `["false"]`, "killed": `["sh", "-c", "kill -9 $$"]`, "image": `["true"], "image": "busybox"`,
	}
	for name, command := range jobs {
		text := `{"id": "` + name + `", "command": ` + command + `}`
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		want int
		args []string
	}{
		{exitOK, []string{"run", "-runtime", "none", "ok.json"}},
		{exitOK, []string{"help", "probe"}},
		{exitOK, []string{"runs", "-h"}},
		{exitFailed, []string{"run", "-runtime", "none", "killed.json"}},
		{exitUsage, nil},
		{exitUsage, []string{"help", "nothing"}},
		{exitUsage, []string{"run", "-nope"}},
		{exitUsage, []string{"run", "-runtime", "none", "image.json"}},
		{exitPolicy, []string{"run", "-runtime", "none", "policy.json"}},
		{exitUnavailable, []string{"run", "-runtime", "docker", "-docker", "no-such-client", "image.json"}},
		{exitUnavailable, []string{"probe", "-runtime", "docker", "-docker", "no-such-client", "busybox"}},
		{exitUnavailable, []string{"serve", "-data", "ok.json/data"}},
	} {
		cmd := exec.Command("worker", tt.args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		got := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != tt.want {
			t.Errorf("worker %q ended with %d, want %d:\n%s", tt.args, got, tt.want, out)
		}
	}
}
