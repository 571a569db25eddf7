package instance

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What the test binary is told when it is a process that makes an instance.
const (
	ownerFolder = "INSTANCE_TEST_FOLDER"
	ownerStep   = "INSTANCE_TEST_STEP" // where it stands still: a step of New, or lives
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(ownerFolder); folder != "" {
		own(folder, os.Getenv(ownerStep))
	}
	os.Exit(m.Run())
}

// own makes an instance, says so at the step, and waits to be killed.
func own(folder, at string) {
	step := func(name string) {
		if name == at {
			fmt.Println(name)
			time.Sleep(time.Hour)
		}
	}
	_, err := New(folder, step, os.Rename)
	step("lives")
	fmt.Fprintf(os.Stderr, "%s was not reached: %v\n", at, err)
	os.Exit(1)
}

// startOwner starts a process that makes an instance and stands still at a step.
// kill is kill -9, and waits.
func startOwner(t *testing.T, folder, step string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerFolder+"="+folder, ownerStep+"="+step)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != step+"\n" {
		t.Fatalf("the owner said %q, %v, want %s", line, err, step)
	}
	return kill
}

func noStep(string) {}

func newFile(t *testing.T, folder string) *File {
	t.Helper()
	f, err := New(folder, noStep, os.Rename)
	if err != nil {
		t.Fatalf("New = %v, want no error", err)
	}
	t.Cleanup(func() { _ = f.Close(false) })
	return f
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// onlyName returns the name of the only file of a folder.
func onlyName(t *testing.T, folder string) string {
	t.Helper()
	all := names(t, folder)
	if len(all) != 1 {
		t.Fatalf("the folder holds %q, want one file", all)
	}
	return all[0]
}

func wantTake(t *testing.T, folder, name string, want error) {
	t.Helper()
	f, err := Take(folder, name)
	if f != nil {
		_ = f.Close(true)
	}
	if !errors.Is(err, want) || (f == nil) != (want != nil) {
		t.Errorf("Take(%q) = %v, %v, want error %v", name, f, err, want)
	}
}

// An owner that is killed, at any step, leaves one file that can be taken; until
// then it can't from the instant that it was locked on.
func TestTakeFromKilledOwner(t *testing.T) {
	for step, want := range map[string]struct{ temp, held bool }{
		"instance:made":   {temp: true},
		"instance:locked": {temp: true, held: true},
		"lives":           {held: true},
	} {
		t.Run(step, func(t *testing.T) {
			folder := t.TempDir()
			kill := startOwner(t, folder, step)
			name := onlyName(t, folder)
			if IsTemp(name) != want.temp || IsID(name) == want.temp {
				t.Errorf("its file is %q, want a temporary one: %v", name, want.temp)
			}
			if want.held {
				wantTake(t, folder, name, ErrHeld)
			}
			kill()
			f, err := Take(folder, name)
			if err != nil {
				t.Fatalf("Take from one that is gone = %v, want no error", err)
			}
			if id := strings.TrimPrefix(name, tempPrefix); f.ID != id {
				t.Errorf("Take gives id %q, want %q", f.ID, id)
			}
			wantTake(t, folder, name, ErrHeld) // one sweeper at a time
			for range 2 {
				if err := f.Close(false); err != nil {
					t.Errorf("Close = %v, want no error", err)
				}
			}
			wantTake(t, folder, name, fs.ErrNotExist)
		})
	}
}

// The file must be held at the instant that its own name appears.
func TestNeverSeenUnlocked(t *testing.T) {
	folder := t.TempDir()
	f, err := New(folder, noStep, func(from, to string) error {
		wantTake(t, folder, filepath.Base(from), ErrHeld)
		wantTake(t, folder, filepath.Base(to), fs.ErrNotExist)
		err := os.Rename(from, to)
		wantTake(t, folder, filepath.Base(to), ErrHeld)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if name := onlyName(t, folder); name != f.ID || !IsID(name) {
		t.Errorf("its file is %q, want its id %q", name, f.ID)
	}
	if err := f.Close(true); err != nil {
		t.Errorf("Close = %v, want no error", err)
	}
	wantTake(t, folder, f.ID, nil)
}

// A sweep may take a file that was made and is not locked yet: another is made.
func TestNewAfterSweep(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprintf("the sweep is done %v", done), func(t *testing.T) {
			folder := t.TempDir()
			var taken *File
			made := 0
			f, err := New(folder, func(step string) {
				if step != "instance:made" {
					return
				}
				if made++; made > 1 {
					return
				}
				var err error
				if taken, err = Take(folder, onlyName(t, folder)); err != nil {
					t.Fatal(err)
				}
				if done {
					_ = taken.Close(false)
				}
			}, os.Rename)
			if err != nil || made != 2 {
				t.Fatalf("New = %v with %d files made, want the second", err, made)
			}
			defer f.Close(false)
			if err := taken.Close(false); err != nil {
				t.Errorf("the sweeper's Close = %v, want no error", err)
			}
			if name := onlyName(t, folder); name != f.ID {
				t.Errorf("the folder holds %q, want %q", name, f.ID)
			}
			wantTake(t, folder, f.ID, ErrHeld)
		})
	}
}

func TestNewFails(t *testing.T) {
	folder := t.TempDir()
	for _, err := range []error{syscall.EINVAL, fs.ErrExist} {
		f, got := New(folder, noStep, func(from, to string) error { return err })
		if f != nil || !errors.Is(got, err) {
			t.Errorf("New with a rename that fails = %v, %v, want %v", f, got, err)
		}
	}
	always := func(string) { _ = os.Remove(filepath.Join(folder, onlyName(t, folder))) }
	if f, err := New(folder, always, os.Rename); f != nil || err == nil {
		t.Errorf("New of a file that always vanishes = %v, %v, want an error", f, err)
	}
	if left := names(t, folder); len(left) > 0 {
		t.Errorf("New left %q, want nothing", left)
	}
}

// Of sweepers that find the same file one gets it, and after it was removed none.
func TestSweepersAtOnce(t *testing.T) {
	folder := t.TempDir()
	for range 200 {
		f := newFile(t, folder)
		if err := f.Close(true); err != nil {
			t.Fatal(err)
		}
		var took atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				dead, err := Take(folder, f.ID)
				if err == nil {
					took.Add(1)
					err = dead.Close(false)
				}
				if err != nil && !errors.Is(err, ErrHeld) && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a sweeper got %v, want ErrHeld or ErrNotExist", err)
				}
			})
		}
		all.Wait()
		if took.Load() != 1 {
			t.Fatalf("%d sweepers took one file, want 1", took.Load())
		}
	}
}

// What lies under an instance's name and was made by nobody of us is neither
// followed nor waited for.
func TestTakeOthersFiles(t *testing.T) {
	const name = "0123456789ab"
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		make func(path string) error
		want error
	}{
		"link":          {func(path string) error { return os.Symlink(outside, path) }, syscall.ELOOP},
		"dangling link": {func(path string) error { return os.Symlink(outside+"x", path) }, syscall.ELOOP},
		"folder":        {func(path string) error { return os.Mkdir(path, 0o700) }, syscall.EISDIR},
		"pipe":          {func(path string) error { return syscall.Mkfifo(path, 0o600) }, nil},
		"nothing":       {func(string) error { return nil }, fs.ErrNotExist},
	} {
		t.Run(what, func(t *testing.T) {
			folder := t.TempDir()
			if err := test.make(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			wantTake(t, folder, name, test.want)
		})
	}
}

func TestNames(t *testing.T) {
	type answer struct{ ID, Temp bool }
	for name, want := range map[string]answer{
		"0123456789ab":            {ID: true},
		".new-0123456789ab":       {Temp: true},
		"":                        {},
		".new-":                   {},
		"0123456789a":             {},
		"0123456789abc":           {},
		"0123456789AB":            {},
		"0123456789ag":            {},
		"01234/6789ab":            {},
		"0123456789ab.files":      {},
		".new-.new-0123456789ab":  {},
		"new-0123456789ab":        {},
		".new-0123456789ab.files": {},
	} {
		if diff := cmp.Diff(want, answer{IsID(name), IsTemp(name)}); diff != "" {
			t.Errorf("%q is an id, a temporary name (-want +got):\n%s", name, diff)
		}
	}
}
