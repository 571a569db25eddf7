package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/edgehero/dispatch/internal/lab"
)

// A pty is a pseudo-terminal with a program in it.
type pty struct {
	t       *testing.T
	master  *os.File
	cmd     *exec.Cmd
	changed chan struct{} // gets something when the screen has changed

	mu       sync.Mutex
	emulator emulator
	raw      strings.Builder
}

// inTerminal starts the worker in a terminal of its own.
func inTerminal(t *testing.T, columns, rows int, env []string, args ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		lab.Missing(t, "pty", err.Error())
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatalf("make a pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("open the pseudo-terminal: %v", err)
	}
	defer slave.Close()
	p := &pty{t: t, master: master, changed: make(chan struct{}, 1)}
	p.resize(columns, rows)

	p.cmd = exec.Command("worker", args...)
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "TERM=")
	}), env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // in case the test ended early
	go p.read()
	return p
}

// read feeds the emulator until the last one that has the terminal open is gone.
func (p *pty) read() {
	defer close(p.changed)
	buf := make([]byte, 4096)
	var rest []byte
	for {
		n, err := p.master.Read(buf)
		if err != nil {
			return
		}
		text := append(rest, buf[:n]...)
		whole := wholeText(text)
		rest = slices.Clone(text[whole:])
		p.mu.Lock()
		p.raw.Write(text[:whole])
		p.emulator.write(string(text[:whole]))
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// wholeText returns how much of a text does not end inside a control sequence or
// a rune.
func wholeText(text []byte) int {
	end := len(text)
	if i := strings.LastIndexByte(string(text), '\x1b'); i >= 0 {
		if !strings.ContainsFunc(string(text[i+1:]), func(r rune) bool { return r >= '@' && r != '[' }) {
			return i
		}
	}
	for back := 1; back < utf8.UTFMax && back <= end; back++ {
		if utf8.RuneStart(text[end-back]) {
			if !utf8.FullRune(text[end-back:]) {
				end -= back
			}
			break
		}
	}
	return end
}

func (p *pty) resize(columns, rows int) {
	p.t.Helper()
	p.mu.Lock()
	p.emulator.columns = columns
	p.mu.Unlock()
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		p.t.Fatalf("resize the terminal: %v", err)
	}
}

// await returns once the screen is as wanted.
func (p *pty) await(what string, ok func(screen string) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for {
		p.mu.Lock()
		screen := strings.Join(p.emulator.screen(), "\n")
		p.mu.Unlock()
		if ok(screen) {
			return
		}
		select {
		case _, open := <-p.changed:
			if open {
				continue
			}
			p.t.Fatalf("%s: the program ended with the screen\n%s", what, screen)
		case <-ctx.Done():
			p.t.Fatalf("%s: the screen still is\n%s", what, screen)
		}
	}
}

// end waits for the program and returns the last screen and all that was sent.
func (p *pty) end() (screen, raw string) {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the program: %v", err)
	}
	for range p.changed {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.emulator.screen(), "\n"), p.raw.String()
}

// waitingJob enqueues a job that prints two lines, the last with control
// characters in it, and then waits for its folder's file done.
func waitingJob(t *testing.T, data, folder, id string) {
	t.Helper()
	cmd := exec.Command("worker", "enqueue", "-data", data, "-")
	cmd.Stdin = strings.NewReader(`{"id": "` + id + `", "folder": "` + folder + `", "memory": "64m", "cpus": "0.25", "command": ["sh", "-c",
		"echo first; printf 'evil \\033[7mline\\007\\n'; until [ -e done ]; do sleep 0.1; done"]}`)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("enqueue: %v\n%s", err, out)
	}
}

// elapsed is how long the line of job-a says that it has run.
var elapsed = regexp.MustCompile(`\njob-a  running +([0-9]+s) `)

func TestServeOnTerminal(t *testing.T) {
	for _, tt := range []struct {
		name  string
		env   []string
		color bool
	}{
		{"colour", []string{"TERM=xterm"}, true},
		{"no colour", []string{"TERM=xterm", "NO_COLOR=1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			data := filepath.Join(folder, "data")
			for _, id := range []string{"job-a", "job-b"} {
				waitingJob(t, data, folder, id)
			}
			p := inTerminal(t, 100, 24, tt.env, "serve", "-data", data, "-runtime", "none", "-allow-process", "-slots", "2", "-drain", "1m")
			for _, id := range []string{"job-a", "job-b"} {
				p.await("a line for "+id, func(screen string) bool {
					return strings.Contains(screen, "\n"+id+"  running ") && strings.Count(screen, "-/64m  evil \uFFFD[7mline\uFFFD") == 2
				})
			}
			p.resize(34, 24)
			p.await("lines cut to the new width", func(screen string) bool {
				lines := strings.Split(screen, "\n")
				last := lines[len(lines)-2:]
				return !strings.Contains(screen, "evil") && utf8.RuneCountInString(last[0]) == 33 && utf8.RuneCountInString(last[1]) == 33 &&
					strings.HasSuffix(last[0], "…") && strings.Count(screen, "running") == 2
			})
			p.resize(100, 24)
			p.await("lines of the old width", func(screen string) bool { return strings.Count(screen, "evil") == 2 })
			seen := map[string]bool{}
			p.await("in place, how long a job runs", func(screen string) bool {
				if shown := elapsed.FindAllStringSubmatch(screen, -1); len(shown) == 1 {
					seen[shown[0][1]] = true
				}
				return len(seen) > 1
			})
			if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			p.await("that the worker stops", func(screen string) bool {
				return strings.Count(screen, "  stopping ") == 2 && !strings.Contains(screen, "running")
			})
			if err := os.WriteFile(filepath.Join(folder, "done"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.await("the jobs' end", func(screen string) bool {
				return strings.Count(screen, "ended job=") == 2 && !strings.Contains(screen, "stopping")
			})
			screen, raw := p.end()
			for line := range strings.SplitSeq(screen, "\n") {
				if !strings.HasPrefix(line, "serving ") && !strings.HasPrefix(line, "picked job=") &&
					!strings.HasPrefix(line, "started job=") && !strings.HasPrefix(line, "ended job=") && !strings.Contains(line, "level=WARN msg=no_isolation") {
					t.Errorf("the last screen has the line %q", line)
				}
			}
			if strings.Contains(raw, "\x1b[7m") || strings.Contains(raw, "\a") {
				t.Errorf("a job's control characters reached the terminal: %q", raw)
			}
			for state, color := range map[string]string{"running": "\x1b[32m", "stopping": "\x1b[33m"} {
				if got := strings.Contains(raw, color); got != tt.color {
					t.Errorf("the colour of %s was sent: %v, want %v", state, got, tt.color)
				}
			}
		})
	}
}

// A cgroup of a job's own says how much memory it holds now.
func TestServeShowsMemory(t *testing.T) {
	parent := lab.CgroupParent(t)
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	waitingJob(t, data, folder, "job-a")
	p := inTerminal(t, 100, 24, nil, "serve", "-data", data, "-runtime", "none", "-allow-process", "-cgroup-parent", parent)
	p.await("memory now against the size", func(screen string) bool {
		return strings.Contains(screen, "iB/64m  evil")
	})
	if err := os.WriteFile(filepath.Join(folder, "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.await("the job's end", func(screen string) bool { return strings.Contains(screen, "ended job=") })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end()
}

func TestRunOnTerminal(t *testing.T) {
	for _, tt := range []struct {
		name, term string
		drawn      bool
	}{{"a terminal", "xterm", true}, {"a dumb one", "dumb", false}} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			job := filepath.Join(folder, "job.json")
			text := `{"id": "greet", "folder": ".", "memory": "64m", "command": ["sh", "-c", "echo hello; until [ -e done ]; do sleep 0.1; done"]}`
			if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := inTerminal(t, 100, 24, []string{"TERM=" + tt.term, "NO_COLOR=1"}, "run", "-data", filepath.Join(folder, "data"), "-runtime", "none", job)
			p.await("the job's line", func(screen string) bool {
				return strings.Contains(screen, "  | hello") && strings.Contains(screen, "greet  running") == tt.drawn
			})
			if err := os.WriteFile(filepath.Join(folder, "done"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			screen, raw := p.end()
			if strings.Contains(screen, "running") || !strings.Contains(screen, "  | hello") || !strings.Contains(screen, "job greet: completed") {
				t.Errorf("the last screen is\n%s", screen)
			}
			if strings.Contains(raw, "\x1b") != tt.drawn {
				t.Errorf("control sequences were sent to %s: %q", tt.name, raw)
			}
		})
	}
}

// With -json a terminal gets what a pipe gets.
func TestRunJSONOnTerminal(t *testing.T) {
	folder := t.TempDir()
	job := filepath.Join(folder, "job.json")
	if err := os.WriteFile(job, []byte(`{"command": ["echo", "hello"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := inTerminal(t, 100, 24, []string{"TERM=xterm"}, "run", "-json", "-data", folder, "-runtime", "none", job)
	_, raw := p.end()
	if strings.Contains(raw, "\x1b") || strings.Contains(raw, "hello") || !strings.Contains(raw, `"outcome": "completed"`) {
		t.Errorf("run -json sent the terminal %q, want the record alone", raw)
	}
}
