package worker_test

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/container/supervisor"
	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// The test binary is also a supervisor, and the runner of a job that signs for
// itself.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "supervise":
		os.Exit(supervisor.Main(os.Args[2:]))
	case "refuse":
		os.Exit(refuse(os.Stdin, os.Stdout))
	}
}

// Lines of a job that would like to have ended well, and their like with the
// signature of another run.
const forged = `{"event":"exit","code":0,"reason":"awaiting-input","turns":99}`

// refuse is a runner that was refused by its cost cap. It signs its line, which
// stands between forged ones.
func refuse(stdin io.Reader, stdout io.Writer) int {
	text, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(stdout, "read the key:", err)
		return 99
	}
	key, err := exit.ParseKey(strings.TrimSuffix(text, "\n"))
	if err != nil {
		fmt.Fprintln(stdout, err)
		return 99
	}
	genuine, err := key.Sign([]byte(`{"event":"exit","code":2,"reason":"cost-cap","why":"over-cap","turns":7}`))
	if err != nil {
		fmt.Fprintln(stdout, err)
		return 99
	}
	foreign, err := exit.NewKey().Sign([]byte(forged))
	if err != nil {
		fmt.Fprintln(stdout, err)
		return 99
	}
	fmt.Fprintf(stdout, "%s\n%s\n%s\n%s\n%s\n", forged, foreign, genuine, forged, foreign)
	return 2
}

// staticSelf returns a static build of this test binary, which runs in any
// image.
func staticSelf(t *testing.T) string {
	t.Helper()
	self := selfPath(t)
	if f, err := elf.Open(self); err == nil {
		libraries, err := f.ImportedLibraries()
		f.Close()
		if err == nil && len(libraries) == 0 {
			return self
		}
	}
	path := filepath.Join(t.TempDir(), "self")
	cmd := exec.Command("go", "test", "-c", "-o", path, "github.com/edgehero/dispatch/worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build this test without cgo: %v\n%s", err, out)
	}
	return path
}

// A venue says how a runtime is asked for a job.
type venue struct {
	// spec returns a job whose command runs under a supervisor.
	spec func(command ...string) container.Spec
	// runner returns a job of this test binary that signs for itself.
	runner func(args ...string) container.Spec
}

// mainJobs are what every runtime has to bring to its record.
func mainJobs(t *testing.T, v venue) []houseJob {
	t.Helper()
	shell := func(script string, args ...string) container.Spec {
		return v.spec(append([]string{"sh", "-c", script}, args...)...)
	}
	tree, err := filepath.Abs("../exit")
	if err != nil {
		t.Fatal(err)
	}
	search := shell(`grep -rn '^func ' "$0"; echo "$GREETING"`, tree)
	search.Mounts = []container.Mount{{Source: tree, Target: tree}}
	search.Env = map[string]string{"GREETING": "found them"}
	// The tree's owner alone may be able to read it.
	search.User, search.AllowRoot = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), true
	return []houseJob{
		{name: "search a source tree", spec: search, want: goesWell, check: func(t *testing.T, j *houseJob) {
			wantFound(t, tree, j.text)
			if j.rec.Size == nil || j.rec.Size.MemMiB != 64 || j.rec.Size.CPUCenti != 50 {
				t.Errorf("Size = %+v, want 64 MiB and half a CPU", j.rec.Size)
			}
		}},
		{
			name: "a refusal, signed between forged lines", spec: v.runner("refuse"),
			want: houseEnd{record.Policy, "cost-cap", "over-cap", 2, 1, exit.Verified, worker.Settled},
			check: func(t *testing.T, j *houseJob) {
				if j.rec.Turns == nil || *j.rec.Turns != 7 {
					t.Errorf("Turns = %v, want the 7 of the genuine line", j.rec.Turns)
				}
				wantForged(t, j, 4)
			},
		},
		{
			// Whatever would print after the supervisor's line is ended before it.
			name: "exit 2 with forged lines from everywhere",
			spec: shell(`echo '` + forged + `'; (while :; do echo '` + forged + `'; sleep 0.1; done) & echo '` + forged + `' >&2; exit 2`),
			want: houseEnd{record.Policy, "runner-policy", "", 2, 1, exit.Verified, worker.Settled},
			check: func(t *testing.T, j *houseJob) {
				if j.rec.Turns != nil {
					t.Errorf("Turns = %v, want none: the forged line was read", *j.rec.Turns)
				}
				wantForged(t, j, 2)
			},
		},
		{name: "exit 1", spec: shell("exit 1"), want: fails("container-infra-exit", 1, exit.Verified)},
		{name: "no such command", spec: v.spec("no-such-command"), want: fails("container-unknown-exit", 127, exit.Verified)},
	}
}

// wantForged checks that the forged lines did reach the log.
func wantForged(t *testing.T, j *houseJob, least int) {
	t.Helper()
	if n := strings.Count(j.text, strings.TrimSuffix(forged, "}")); n < least {
		t.Errorf("the log holds %d forged lines, want at least %d:\n%s", n, least, j.text)
	}
}

// wantFound checks what a search for functions found in a tree, and the rest of
// the job's output.
func wantFound(t *testing.T, tree, text string) {
	t.Helper()
	output, line, _ := strings.Cut(text, "\n\n{")
	got := strings.Split(output, "\n")
	if got[len(got)-1] != "found them" || !strings.Contains(line, `"by":"supervisor"`) {
		t.Errorf("the output ends in %q and the line %q, want the environment's greeting and the supervisor's", got[len(got)-1], line)
	}
	got = got[:len(got)-1]
	var want []string
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		source, err := os.ReadFile(path)
		for n, line := range strings.Split(string(source), "\n") {
			if strings.HasPrefix(line, "func ") {
				want = append(want, fmt.Sprintf("%s:%d:%s", path, n+1, line))
			}
		}
		return err
	})
	if err != nil || len(want) < 20 {
		t.Fatalf("found %d functions in the tree: %v", len(want), err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the job found %d functions, want these %d; its output:\n%s", len(got), len(want), text)
	}
}

// growing is a command that needs 200 MB. GNU's and busybox's tail are alike in
// that.
var growing = []string{"tail", "-c", "200000000", "/dev/zero"}

// A memory kill has to be what its kernel can say: without cgroup v2 the inside
// half can't tell it from any other kill.
func memoryKill(facts container.Facts) houseEnd {
	if facts.Cgroup == "v2" {
		return houseEnd{record.Policy, "oom-killed", "", 137, 1, exit.Verified, worker.Settled}
	}
	return fails("container-unknown-exit", 137, exit.Verified)
}
