package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/edgehero/dispatch/internal/lab"
)

// TestRedisScripts types commands on a Redis server of each script's own.
func TestRedisScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/redis/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the scripts: %q, %v", files, err)
	}
	for _, file := range files {
		server := lab.Redis(t)
		testscript.Run(t, testscript.Params{
			Files:               []string{file},
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			Cmds:                map[string]func(*testscript.TestScript, bool, []string){"until": until},
			Setup: func(env *testscript.Env) error {
				env.Setenv("REDIS", server.Addr)
				env.Setenv("PATH", os.Getenv("PATH"))
				return nil
			},
		})
	}
}

// until runs a program again and again until it prints what a pattern matches:
// until PATTERN PROGRAM ARGUMENT...
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM [ARGUMENT]...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // what it prints counts
		stdout := ts.ReadFile("stdout")
		if pattern.MatchString(stdout) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q printed nothing that matches %q for a minute, but:\n%s", args[1:], args[0], stdout)
		}
	}
}

// A server that is away, at the start or later, is waited for.
func TestServeWaitsForRedis(t *testing.T) {
	server := lab.Redis(t)
	server.Stop()
	folder := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("worker", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "DISPATCH_REDIS=redis://"+server.Addr)
		return cmd
	}
	serving := command("serve", "-runtime", "none", "-allow-process", "-host", "host-a")
	stderr, err := serving.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serving.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serving.Process.Kill() }) // where the test failed it still runs
	log := bufio.NewScanner(stderr)
	for n, event := range []string{"redis_away", "queue_server_away"} {
		for !strings.Contains(log.Text(), "msg="+event+" ") {
			if !log.Scan() {
				t.Fatalf("serve ended without the event %s: %v", event, serving.Wait())
			}
		}
		server.Start()
		job := command("enqueue", "-")
		job.Stdin = strings.NewReader(`{"id": "` + event + `", "command": ["true"]}`)
		if out, err := job.CombinedOutput(); err != nil {
			t.Fatalf("enqueue: %v: %s", err, out)
		}
		if out, err := command("runs", "-f", "-until", strconv.Itoa(n+1)).CombinedOutput(); err != nil {
			t.Fatalf("runs: %v: %s", err, out)
		}
		server.Stop()
	}
	if err := serving.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for log.Scan() {
	}
	if err := serving.Wait(); err != nil {
		t.Errorf("serve stopped with %v, want no error while its server is away", err)
	}
}

// A server that refuses is not waited for, and its answer shows no password.
func TestRedisThatRefuses(t *testing.T) {
	server := lab.Redis(t, "--user", "alice", "on", ">hunter2", "allkeys", "allcommands")
	for password, want := range map[string]int{"hunter2": exitUsage, "hunter3": exitUnavailable} {
		for _, command := range [][]string{{"cancel", "nobody"}, {"serve", "-slots", "16385", "-runtime", "none"}} {
			cmd := exec.Command("worker", append(command, "-redis", "redis://alice:"+password+"@"+server.Addr)...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%q as alice:%s ended with %d, %v, want %d:\n%s", command, password, got, err, want, out)
			}
			if strings.Contains(string(out), password) {
				t.Errorf("%q shows the password:\n%s", command, out)
			}
		}
	}
}
