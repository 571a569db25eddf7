package container

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The fake client is this test binary under another name. It does what a real
// daemon does not do on command: it answers each call out of a script.

const fakeName = "fake-client"

// An answer is what the fake client does when it is called.
type answer struct {
	Stdout, Stderr string
	Code           int
	CID            string // written to the cidfile before all else
	Await          string // waits until a file of this name is in its folder
	Touch          string // makes a file of this name in its folder
	Hang           bool   // never ends by itself, deaf to SIGTERM
	Grandchild     bool   // leaves a process behind that holds its output
}

// A script has the answers to each verb in order; the last one is repeated. A
// verb that is not there answers with nothing and 0.
type script map[string][]answer

func init() {
	if filepath.Base(os.Args[0]) == fakeName {
		// Not os.Exit, which under the race detector takes a second.
		syscall.Exit(fakeClient(filepath.Dir(os.Args[0]), os.Args[1:]))
	}
}

func fakeClient(folder string, args []string) int {
	verb := args[0]
	if verb == "container" || verb == "image" || verb == "network" {
		verb += " " + args[1]
	}
	text, err := os.ReadFile(filepath.Join(folder, "script.json"))
	if err != nil {
		return 99
	}
	var s script
	if err := json.Unmarshal(text, &s); err != nil {
		return 99
	}
	nth := note(folder, verb, args)
	answers := s[verb]
	if len(answers) == 0 {
		return 0
	}
	return answers[min(nth, len(answers)-1)].play(folder, args)
}

// note keeps the call, and returns how many of its verb there were before.
func note(folder, verb string, args []string) int {
	f, err := os.OpenFile(filepath.Join(folder, "calls"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		panic(err)
	}
	before, _ := os.ReadFile(f.Name())
	fmt.Fprintf(f, "%s\t%s\n", verb, strings.Join(args, " "))
	return strings.Count("\n"+string(before), "\n"+verb+"\t")
}

func (a answer) play(folder string, args []string) int {
	for _, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--cidfile="); ok && a.CID != "" {
			os.WriteFile(path, []byte(a.CID), 0o600)
		}
	}
	fmt.Print(a.Stdout)
	fmt.Fprint(os.Stderr, a.Stderr)
	if a.Touch != "" {
		os.WriteFile(filepath.Join(folder, a.Touch), nil, 0o600)
	}
	if a.Grandchild {
		// It runs until this folder is gone.
		p, err := os.StartProcess(os.Args[0], []string{os.Args[0], "await"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			return 98
		}
		p.Release()
	}
	if args[0] == "await" {
		a.Await = "never"
	}
	for a.Await != "" || a.Hang {
		signal.Ignore(syscall.SIGTERM)
		if _, err := os.Stat(filepath.Join(folder, a.Await)); err == nil && a.Await != "" {
			break
		}
		if _, err := os.Stat(folder); err != nil {
			break // the test is over
		}
		time.Sleep(5 * time.Millisecond)
	}
	return a.Code
}

const fakeInfo = `{"ServerVersion":"20.10.24","NCPU":2,"MemTotal":8589934592,"CgroupDriver":"cgroupfs","CgroupVersion":"2",
"MemoryLimit":true,"SwapLimit":true,"CPUShares":true,"CpuCfsQuota":true,"PidsLimit":true,"SecurityOptions":["name=seccomp"]}`

var fakeID = strings.Repeat("ab", 32)

// A fake is a Docker runtime over the fake client.
type fake struct {
	*Docker
	folder string
	log    *logBuffer
}

// The bounds of a fake are wide, for a machine that is busy. A test of what
// never ends shortens the one that ends it.
func shortKill(b *bounds) { b.kill = 200 * time.Millisecond }
func shortAsk(b *bounds)  { b.ask = 200 * time.Millisecond }
func shortGone(b *bounds) { b.gone = 200 * time.Millisecond }
func shortPipe(b *bounds) { b.pipe = 200 * time.Millisecond }

// newFake returns a runtime whose client plays a script.
func newFake(t *testing.T, s script, short ...func(*bounds)) fake {
	t.Helper()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(folder, fakeName)
	if err := os.Symlink(self, client); err != nil {
		t.Fatal(err)
	}
	if _, ok := s["info"]; !ok {
		s["info"] = []answer{{Stdout: fakeInfo}}
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "script.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	d, err := NewDocker(DockerConfig{
		Instance: newTestInstance(t, t.TempDir()), Client: client, Grace: time.Second, Log: textLogger(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.bounds = bounds{
		call: time.Minute, kill: time.Minute, ask: time.Minute, gone: time.Minute,
		pipe: time.Minute, again: 5 * time.Millisecond,
	}
	for _, f := range short {
		f(&d.bounds)
	}
	return fake{d, folder, log}
}

// calls returns the calls of a verb, each with its arguments.
func (f fake) calls(t *testing.T, verb string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(text)) {
		if v, args, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); v == verb {
			calls = append(calls, args)
		}
	}
	return calls
}

// noFiles checks that no file of a run is left.
func (f fake) noFiles(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(f.config.Instance.files(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	left = slices.DeleteFunc(left, func(p string) bool { return p == f.config.Instance.clientFolder() })
	if len(left) > 0 {
		t.Errorf("files %q are left behind", left)
	}
}

// containerJSON is what inspect says of the fake container.
func containerJSON(state string) string {
	return `[{"Id":"` + fakeID + `","Name":"/fake","State":{` + state + `},"Config":{"Labels":{"dispatch.instance":"i"}},"HostConfig":{"NetworkMode":"none"}}]` + "\n"
}

const (
	isRunning = `"Status":"running","Running":true,"ExitCode":0,"Pid":42,"StartedAt":"2026-01-02T03:04:05.6Z","FinishedAt":"0001-01-01T00:00:00Z"`
	isCreated = `"Status":"created","Running":false,"ExitCode":127,"Pid":0,"StartedAt":"0001-01-01T00:00:00Z","FinishedAt":"0001-01-01T00:00:00Z"`
)

func hasExited(code int) string {
	return fmt.Sprintf(`"Status":"exited","Running":false,"ExitCode":%d,"OOMKilled":false,"Pid":0,"StartedAt":"2026-01-02T03:04:05.6Z","FinishedAt":"2026-01-02T03:05:00Z"`, code)
}
