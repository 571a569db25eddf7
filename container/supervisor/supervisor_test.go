package supervisor_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/exit"
)

// limit bounds every wait of these tests.
const limit = 30 * time.Second

// A run is one supervisor that a test started.
type run struct {
	*exec.Cmd
	t      *testing.T
	key    exit.Key
	out    *bufio.Reader
	stdout io.ReadCloser
	stderr bytes.Buffer
}

// start starts a supervisor. With a key it writes the key's line and input to
// it, and closes its input.
func start(t *testing.T, key exit.Key, input string, args ...string) *run {
	t.Helper()
	if !key.IsZero() {
		args = append([]string{"--key-stdin"}, args...)
		input = key.Reveal() + "\n" + input
	}
	r := &run{Cmd: self("supervise", args...), t: t, key: key}
	r.Stdin = strings.NewReader(input)
	r.begin()
	return r
}

func (r *run) begin() {
	r.t.Helper()
	if r.Stderr == nil {
		r.Stderr = &r.stderr
	}
	if r.SysProcAttr == nil {
		// A command that signals its group must not reach this process.
		r.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	r.WaitDelay = limit
	out, err := r.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.stdout, r.out = out, bufio.NewReader(out)
	if err := r.Start(); err != nil {
		r.t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { r.Process.Kill() })
	r.t.Cleanup(func() { timer.Stop(); r.Process.Kill() })
}

// arrival returns the pid that a job prints when it is there.
func (r *run) arrival() int {
	r.t.Helper()
	var pid int
	line, err := r.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "here %d\n", &pid)
	}
	if err != nil {
		r.t.Fatalf("the job's first line is %q (%v), stderr %q", line, err, r.stderr.String())
	}
	return pid
}

// end waits for the supervisor and returns its exit code, its line, and what
// stood before the line.
func (r *run) end() (code int, line *exit.Line, before string) {
	r.t.Helper()
	out, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.Wait() // its error is the exit code
	status := r.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Exited() {
		r.t.Fatalf("the supervisor ended by %v, stderr %q", status.Signal(), r.stderr.String())
	}
	line, before = r.read(string(out))
	return status.ExitStatus(), line, before
}

// read splits the output at the exit line, and holds what is true of every run.
func (r *run) read(out string) (line *exit.Line, before string) {
	r.t.Helper()
	if !r.key.IsZero() && strings.Contains(out+r.stderr.String(), r.key.Reveal()) {
		r.t.Fatalf("the key was printed")
	}
	text, ended := strings.CutSuffix(out, "\n")
	start := strings.LastIndexByte(text, '\n')
	if !ended || start < 0 {
		r.t.Fatalf("output %q does not end in a line of its own, stderr %q", out, r.stderr.String())
	}
	if r.key.IsZero() {
		line = exit.Parser{}.Parse([]byte(out))
	} else {
		var auth exit.Auth
		if line, auth = (exit.Parser{}).ParseSigned([]byte(out), r.key); auth != exit.Verified {
			r.t.Fatalf("auth is %q of %q", auth, out)
		}
	}
	if line == nil || line.Code == nil || !line.BySupervisor {
		r.t.Fatalf("line of %q = %+v, want one by the supervisor", out, line)
	}
	return line, text[:start]
}

func TestExitCode(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := func(args ...string) []string { return append([]string{exe, "job"}, args...) }
	tests := []struct {
		name    string
		flags   string
		command []string
		want    int
	}{
		{"success", "", job("exit", "0"), 0},
		{"one", "", job("exit", "1"), 1},
		{"two", "", job("exit", "2"), 2},
		{"of a container engine", "", job("exit", "125"), 125},
		{"of a shell", "", job("exit", "137"), 137},
		{"highest", "", job("exit", "255"), 255},
		{"SIGTERM", "", job("signal", "15"), 143},
		{"SIGKILL", "", job("signal", "9"), 137},
		{"SIGKILL to its own group", "", job("killgroup"), 137},
		{"not found", "", []string{"no-such-program"}, 127},
		{"no such path", "", []string{"/no/such/program"}, 127},
		{"not executable", "", []string{plain}, 126},
		{"a folder", "", []string{"/"}, 126},
		{"plain success", "--fail-code=2", job("exit", "0"), 0},
		{"plain failure", "--fail-code=2", job("exit", "7"), 2},
		{"plain 137", "--fail-code=2", job("exit", "137"), 2},
		{"plain SIGKILL", "--fail-code=2", job("signal", "9"), 137},
		{"plain not found", "--fail-code=2", []string{"no-such-program"}, 127},
	}
	for _, test := range tests {
		for _, key := range []exit.Key{{}, exit.NewKey()} {
			t.Run(fmt.Sprintf("%s signed %v", test.name, !key.IsZero()), func(t *testing.T) {
				t.Parallel()
				args := append(strings.Fields(test.flags), "--")
				r := start(t, key, "", append(args, test.command...)...)
				code, line, _ := r.end()
				if code != test.want || *line.Code != int64(test.want) {
					t.Errorf("exit code = %d, line's = %d, want %d; stderr %q", code, *line.Code, test.want, r.stderr.String())
				}
				if line.Reason != "" || line.OOMKilled {
					t.Errorf("reason = %q, OOMKilled = %v, want none", line.Reason, line.OOMKilled)
				}
			})
		}
	}
}

func TestStartErrorNamesTheCommand(t *testing.T) {
	r := start(t, exit.Key{}, "", "no-such-program", "an argument")
	r.end()
	if got := r.stderr.String(); !strings.Contains(got, `"no-such-program"`) || strings.Contains(got, "argument") {
		t.Errorf("stderr = %q, want the program named and no argument", got)
	}
}

func TestBadArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"none", "", "no command"},
		{"flags alone", "--key-stdin --", "no command"},
		{"an unknown flag", "--nope true", "nope"},
		{"runner without a key", "--runner true", "--key-stdin"},
		{"fail code too high", "--fail-code=256 true", "256"},
		{"fail code below 0", "--fail-code=-1 true", "-1"},
		{"deadline below 0", "--deadline=-1s true", "-1s"},
		{"deadline no duration", "--deadline=5 true", "deadline"},
		{"descriptor of output", "--alive-fd=1 true", "--alive-fd=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := self("supervise", strings.Fields(test.args)...).CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || failed.ExitCode() != 125 {
				t.Errorf("supervise %q: %v, want exit status 125", test.args, err)
			}
			if !strings.Contains(string(out), test.want) || strings.Count(string(out), "\n") != 1 {
				t.Errorf("supervise %q prints %q, want one line with %q", test.args, out, test.want)
			}
		})
	}
}

func TestKeyThatIsNone(t *testing.T) {
	whole := exit.NewKey().Reveal()
	tests := []struct{ name, input string }{
		{"nothing", ""},
		{"an empty line", "\n"},
		{"no newline", whole},
		{"too short", whole[1:] + "\n"},
		{"upper case", strings.ToUpper(whole) + "\n"},
		{"a carriage return", whole + "\r\n"},
		{"endless", strings.Repeat(whole, 10_000) + "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			marker := filepath.Join(t.TempDir(), "marker")
			r := start(t, exit.Key{}, test.input, "--key-stdin", "--", "touch", marker)
			code, line, before := r.end()
			if code != 125 || *line.Code != 125 || before != "" {
				t.Errorf("exit code = %d, line's = %d, output %q, want 125 and none", code, *line.Code, before)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("the command ran without its key")
			}
			if strings.Contains(strings.ToLower(r.stderr.String()), whole[1:]) {
				t.Errorf("stderr shows the key")
			}
		})
	}
}

func TestInput(t *testing.T) {
	key := exit.NewKey()
	input := "first\nlast without a newline"
	t.Run("of a plain command", func(t *testing.T) {
		_, _, got := start(t, key, input, "--", exe(t), "job", "cat").end()
		if got != input {
			t.Errorf("the command read %q, want %q", got, input)
		}
	})
	t.Run("of a runner", func(t *testing.T) {
		r := start(t, key, input, "--runner", "--", exe(t), "job", "cat")
		r.key = exit.Key{} // it is printed, by the job
		_, _, got := r.end()
		if want := key.Reveal() + "\n" + input; got != want {
			t.Errorf("the runner read %d bytes, want the key's line and %q", len(got), input)
		}
	})
}

// A command that does not read its input must neither hang the writer nor fail.
func TestInputNeverRead(t *testing.T) {
	for _, flag := range []string{"--fail-code=2", "--runner"} {
		t.Run(flag, func(t *testing.T) {
			key := exit.NewKey()
			r := &run{Cmd: self("supervise", "--key-stdin", flag, "--", exe(t), "job", "leave", "arrive"), t: t, key: key}
			input, err := r.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			wrote := make(chan error, 1)
			r.begin()
			go func() {
				fmt.Fprintln(input, key.Reveal())
				_, err := input.Write(make([]byte, 8<<20))
				wrote <- err
			}()
			code, _, _ := r.end()
			if err := <-wrote; err == nil {
				t.Error("8 MiB of input that nobody reads were written")
			}
			if code != 0 {
				t.Errorf("exit code = %d, want 0", code)
			}
		})
	}
}

// While the command runs on, the writer must learn that its input is closed: a
// client of a container runtime waits for that.
func TestInputClosedByCommand(t *testing.T) {
	key := exit.NewKey()
	r := &run{Cmd: self("supervise", "--key-stdin", "--", "sh", "-c", "exec <&-; exec "+exe(t)+" job trap"), t: t, key: key}
	input, err := r.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.begin()
	fmt.Fprintln(input, key.Reveal())
	r.arrival()
	if _, err := input.Write(make([]byte, 1<<20)); err == nil {
		t.Error("1 MiB was written to an input that is closed")
	}
	r.Process.Signal(syscall.SIGTERM)
	if code, _, _ := r.end(); code != int(syscall.SIGTERM) {
		t.Errorf("exit code = %d, want %d", code, syscall.SIGTERM)
	}
}

func TestLineBeginsAfresh(t *testing.T) {
	for _, text := range []string{"", "ends\n", "does not end", `{"event":"exit"`} {
		_, _, before := start(t, exit.NewKey(), "", "--", exe(t), "job", "print", text).end()
		if before != text {
			t.Errorf("before the line stands %q, want %q", before, text)
		}
	}
}

// A datagram is one write.
func TestLineIsOneWrite(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd := self("supervise", "--", exe(t), "job", "print", "text")
	cmd.Stdout = theirs
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	buf := make([]byte, 1<<16)
	n, err := ours.Read(buf)
	if err != nil || string(buf[:n]) != "text" {
		t.Fatalf("first write = %q, %v, want the command's", buf[:n], err)
	}
	n, err = ours.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, "\n{") || !strings.HasSuffix(got, "}\n") {
		t.Errorf("last write = %q, %v, want the whole line", got, err)
	}
}

func TestOutputThatNobodyReads(t *testing.T) {
	r := start(t, exit.NewKey(), "", "--", exe(t), "job", "trap")
	r.arrival()
	r.stdout.Close()
	r.Process.Signal(syscall.SIGTERM)
	_ = r.Wait()
	if code := r.ProcessState.ExitCode(); code != int(syscall.SIGTERM) {
		t.Errorf("exit code = %d, want %d", code, syscall.SIGTERM)
	}
}

// What the supervisor can't say on standard error does not end it.
func TestErrorsThatNobodyReads(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	key := exit.NewKey()
	r := &run{Cmd: self("supervise", "--key-stdin", "--", "no-such-program"), t: t, key: key}
	r.Stdin = strings.NewReader(key.Reveal() + "\n")
	r.Stderr = write
	r.begin()
	write.Close()
	if code, _, _ := r.end(); code != 127 {
		t.Errorf("exit code = %d, want 127", code)
	}
}

func TestOutputMadeNonBlocking(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exit.json")
	r := start(t, exit.NewKey(), "", "--exit-file="+file, "--", exe(t), "job", "nonblock")
	// Once the file is there the line is next, into a pipe that is full.
	for range int(limit / (10 * time.Millisecond)) {
		if _, err := os.Stat(file); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	code, _, before := r.end()
	if code != 0 || len(before) < 4096 {
		t.Errorf("exit code = %d after %d bytes, want 0 after a full pipe", code, len(before))
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			r := start(t, exit.NewKey(), "", "--", exe(t), "job", "trap")
			r.arrival()
			r.Process.Signal(sig)
			if code, _, _ := r.end(); code != int(sig) {
				t.Errorf("exit code = %d, want %d", code, sig)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	r := start(t, exit.NewKey(), "", "--deadline=300ms", "--", exe(t), "job", "deaf")
	pid := r.arrival()
	code, line, _ := r.end()
	if code != 137 || *line.Code != 137 || line.Reason != "" {
		t.Errorf("exit code = %d, line's = %d with reason %q, want 137 without one", code, *line.Code, line.Reason)
	}
	wantGone(t, pid)
}

func TestEndsWithItsParent(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	key := exit.NewKey()
	r := &run{Cmd: self("supervise", "--key-stdin", "--alive-fd=3", "--", exe(t), "job", "deaf"), t: t, key: key}
	r.Stdin = strings.NewReader(key.Reveal() + "\n")
	r.ExtraFiles = []*os.File{read}
	r.begin()
	read.Close()
	pid := r.arrival()
	write.Close()
	if code, _, _ := r.end(); code != 137 {
		t.Errorf("exit code = %d, want 137", code)
	}
	wantGone(t, pid)
}

// Where whoever asked for a command is gone, another may have it run by now.
func TestStartsNothingForOneThatIsGone(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	write.Close()
	key := exit.NewKey()
	mark := filepath.Join(t.TempDir(), "mark")
	r := &run{Cmd: self("supervise", "--key-stdin", "--alive-fd=3", "--", "touch", mark), t: t, key: key}
	r.Stdin = strings.NewReader(key.Reveal() + "\n")
	r.ExtraFiles = []*os.File{read}
	r.begin()
	read.Close()
	if code, _, _ := r.end(); code != 125 {
		t.Errorf("exit code = %d, want 125", code)
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat = %v, want that the command never ran", err)
	}
}

func TestExitFile(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "exit.json")
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	r := start(t, exit.NewKey(), "", "--exit-file="+path, "--", exe(t), "job", "exit", "4")
	code, _, _ := r.end()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line, auth := exit.Parser{}.ParseSigned(text, r.key)
	if code != 4 || auth != exit.Verified || *line.Code != 4 || !bytes.HasSuffix(text, []byte("}\n")) {
		t.Errorf("exit code = %d, file %q is %q, want code 4 in a verified line", code, text, auth)
	}
	if kept, _ := os.ReadFile(other); string(kept) != "mine" {
		t.Errorf("the file behind the link reads %q", kept)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left, want the exit file alone", len(files))
	}
}

func TestExitFileThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "exit.json", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "exit.json"), filepath.Join(dir, "no", "exit.json")} {
		r := start(t, exit.NewKey(), "", "--exit-file="+path, "--", exe(t), "job", "exit", "4")
		if code, _, _ := r.end(); code != 4 {
			t.Errorf("exit code = %d, want 4", code)
		}
		if got := r.stderr.String(); !strings.Contains(got, "exit file") || strings.Contains(got, dir) {
			t.Errorf("stderr = %q, want the exit file's failure without its path", got)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("%d files are left, want none but what was there", len(files))
		}
	}
}

func exe(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// wantGone fails the test when pid still runs.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); err == nil && !isZombie(pid) {
		t.Errorf("process %d still runs", pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func isZombie(pid int) bool {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return bytes.Contains(stat, []byte(") Z "))
}
