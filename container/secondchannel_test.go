package container

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/edgehero/dispatch/exit"
)

func TestReadExitFile(t *testing.T) {
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		make func(path string) error
		want string // "": an error
	}{
		{"a line", write("line\n"), "line\n"},
		{"the longest", write(strings.Repeat("x", maxExitFile)), strings.Repeat("x", maxExitFile)},
		{"too long", write(strings.Repeat("x", maxExitFile+1)), ""},
		{"not there", func(string) error { return nil }, ""},
		{"a folder", func(p string) error { return os.Mkdir(p, 0o755) }, ""},
		{"a FIFO", func(p string) error { return syscall.Mkfifo(p, 0o644) }, ""},
		{"a link to the outside", func(p string) error { return os.Symlink(outside, p) }, ""},
		{"a link that stays inside", func(p string) error {
			if err := os.WriteFile(p+".real", []byte("inside"), 0o644); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(p)+".real", p)
		}, ""},
		{"a link to a device", func(p string) error { return os.Symlink("/dev/zero", p) }, ""},
		{"a link to itself", func(p string) error { return os.Symlink(filepath.Base(p), p) }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := test.make(filepath.Join(folder, exitFileName)); err != nil {
				t.Fatal(err)
			}
			got, err := readExitFile(folder)
			if string(got) != test.want || (err == nil) != (test.want != "") {
				t.Errorf("readExitFile = %.40q, %v, want %.40q", got, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), folder) {
				t.Errorf("the error shows a path: %v", err)
			}
		})
	}
}

func sign(t *testing.T, key exit.Key, line string) string {
	t.Helper()
	signed, err := key.Sign([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return string(signed) + "\n"
}

// The file counts only where a key was issued, nothing in the output verifies,
// and it verifies itself.
func TestExitLineChannels(t *testing.T) {
	key, other := exit.NewKey(), exit.NewKey()
	const one, two = `{"event":"exit","code":1}`, `{"event":"exit","code":2}`
	tests := []struct {
		name         string
		key          exit.Key
		output, file string
		code         int64 // -1: no line
		auth         exit.Auth
		second       bool
	}{
		{"output verifies", key, sign(t, key, one), sign(t, key, two), 1, exit.Verified, false},
		{"output lost", key, "cut", sign(t, key, two), 2, exit.Verified, true},
		{"output forged", key, sign(t, other, one), sign(t, key, two), 2, exit.Verified, true},
		{"both forged", key, sign(t, other, one), sign(t, other, two), -1, exit.Unverified, false},
		{"file unsigned", key, "", two, -1, exit.Unverified, false},
		{"no file", key, one, "", -1, exit.Unverified, false},
		{"no key", exit.Key{}, one, sign(t, key, two), 1, exit.Unchecked, false},
		{"no key and no output", exit.Key{}, "", two, -1, exit.Unchecked, false},
	}
	for _, test := range tests {
		folder := t.TempDir()
		if test.file != "" {
			if err := os.WriteFile(filepath.Join(folder, exitFileName), []byte(test.file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := newOutput(nil)
		io.WriteString(out, test.output)
		var r Result
		out.exitLine(&r, IO{Key: test.key}, folder)
		code := int64(-1)
		if r.Line != nil {
			code = *r.Line.Code
		}
		if code != test.code || r.Auth != test.auth || r.SecondChannel != test.second {
			t.Errorf("%s: exitLine gave code %d, %q, second channel %v, want %d, %q, %v",
				test.name, code, r.Auth, r.SecondChannel, test.code, test.auth, test.second)
		}
	}
}

func TestStdin(t *testing.T) {
	key := exit.NewKey()
	tests := []struct {
		io   IO
		want string
		none bool
	}{
		{IO{}, "", true},
		{IO{Key: key}, key.Reveal() + "\n", false},
		{IO{Key: key, Stdin: strings.NewReader("in\nput")}, key.Reveal() + "\nin\nput", false},
		{IO{Stdin: strings.NewReader("input")}, "input", false},
		{IO{Stdin: strings.NewReader("")}, "", false},
	}
	for _, test := range tests {
		r, err := test.io.stdin()
		if err != nil || (r == nil) != test.none {
			t.Errorf("stdin = %v, %v, want none %v", r, err, test.none)
			continue
		}
		if r == nil {
			continue
		}
		if got, _ := io.ReadAll(r); string(got) != test.want {
			t.Errorf("stdin gives %q, want %q", got, test.want)
		}
	}
	endless := io.LimitReader(zeros{}, 1<<40)
	if r, err := (IO{Stdin: endless}).stdin(); err == nil || r != nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("stdin of an endless input = %v, %v, want an error that names the bound", r, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
