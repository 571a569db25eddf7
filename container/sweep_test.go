package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/instance"
	"github.com/edgehero/dispatch/internal/lab"
)

// The test binary under this name is a worker that makes an instance in its
// folder, prints its id, and then does nothing until it is killed.
const idleName = "idle-worker"

func init() {
	if filepath.Base(os.Args[0]) != idleName {
		return
	}
	i, err := NewInstance(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(i.ID())
	time.Sleep(time.Hour)
}

// startWorker starts such a worker; kill ends it and waits.
func startWorker(t *testing.T, folder string) (id string, kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), idleName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, folder)
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if id = strings.TrimSpace(line); err != nil || !instance.IsID(id) {
		t.Fatalf("the worker said %q, %v", line, err)
	}
	return id, kill
}

// A shelf is a Holder in memory: what each instance has, and what does not go.
type shelf struct {
	things map[string][]Leftover
	stuck  map[string]bool
	silent bool
	gone   []string
}

func (s *shelf) Leftovers(_ context.Context, instance string) ([]Leftover, error) {
	if s.silent {
		return nil, ErrUnavailable
	}
	return slices.Clone(s.things[instance]), nil
}

func (s *shelf) Remove(_ context.Context, l Leftover) error {
	if s.stuck[l.Name] {
		return errors.New("stuck")
	}
	s.things[l.Instance] = slices.DeleteFunc(s.things[l.Instance], func(x Leftover) bool { return x.Name == l.Name })
	s.gone = append(s.gone, l.Name)
	return nil
}

func sweep(t *testing.T, config SweepConfig) []Leftover {
	t.Helper()
	all, err := Sweep(t.Context(), config)
	if err != nil {
		t.Errorf("Sweep: %v", err)
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestSweepTouchesDeadAlone(t *testing.T) {
	folder := t.TempDir()
	living, _ := startWorker(t, folder)
	dead, kill := startWorker(t, folder)
	own := newTestInstance(t, folder)
	holder := &shelf{things: map[string][]Leftover{}}
	for _, id := range []string{living, dead, own.ID()} {
		holder.things[id] = []Leftover{{Kind: "thing", Name: "of " + id}}
	}
	config := SweepConfig{Folder: folder, Holders: []Holder{holder}}
	if got := sweep(t, config); len(got) != 0 {
		t.Errorf("Sweep with every worker alive = %+v, want nothing", got)
	}
	kill()

	config.DryRun = true
	got := sweep(t, config)
	if len(got) != 2 || got[0].Name != "of "+dead || got[0].Gone || got[1].Kind != "files" || len(holder.gone) != 0 || !exists(filepath.Join(folder, dead)) {
		t.Errorf("a dry run = %+v, removed %q, want the dead one's listed and nothing removed", got, holder.gone)
	}
	config.DryRun = false
	got = sweep(t, config)
	if len(got) != 2 || !got[0].Gone || !got[1].Gone || !slices.Equal(holder.gone, []string{"of " + dead}) {
		t.Errorf("Sweep = %+v, removed %q, want the dead one's gone", got, holder.gone)
	}
	for id, want := range map[string]bool{living: true, own.ID(): true, dead: false} {
		if exists(filepath.Join(folder, id)) != want || exists(filepath.Join(folder, id+filesSuffix)) != want {
			t.Errorf("files of %s there: want %v", id, want)
		}
	}
	if got := sweep(t, config); len(got) != 0 {
		t.Errorf("Sweep again = %+v, want nothing", got)
	}
}

// What does not go is reported each time and keeps the file; a job's claim
// waits for its container.
func TestSweepReportsUntilGone(t *testing.T) {
	folder := t.TempDir()
	id, kill := startWorker(t, folder)
	kill()
	containers := &shelf{
		things: map[string][]Leftover{id: {{Name: "c1", Job: "1"}, {Name: "c2", Job: "2"}}},
		stuck:  map[string]bool{"c1": true},
	}
	claims := &shelf{things: map[string][]Leftover{id: {{Name: "claim1", Job: "1"}, {Name: "claim2", Job: "2"}}}}
	config := SweepConfig{Folder: folder, Holders: []Holder{containers, claims}}
	for range 2 {
		got := sweep(t, config)
		if len(got) == 0 || got[0].Name != "c1" || got[0].Gone || got[0].Err == nil || got[0].Instance != id {
			t.Errorf("Sweep = %+v, want c1 reported", got)
		}
		if !slices.Equal(claims.gone, []string{"claim2"}) || !exists(filepath.Join(folder, id)) {
			t.Errorf("claims handed back: %q, file there: %v", claims.gone, exists(filepath.Join(folder, id)))
		}
	}
	containers.silent = true
	if got, err := Sweep(t.Context(), config); !errors.Is(err, ErrUnavailable) || len(got) != 0 || !exists(filepath.Join(folder, id)) {
		t.Errorf("Sweep of a silent daemon = %+v, %v, want ErrUnavailable and the file kept", got, err)
	}
	containers.silent, containers.stuck = false, nil
	sweep(t, config)
	if !slices.Equal(claims.gone, []string{"claim2", "claim1"}) || exists(filepath.Join(folder, id)) {
		t.Errorf("claims handed back: %q, file there: %v, want all gone", claims.gone, exists(filepath.Join(folder, id)))
	}
}

// Only names of instances are looked at, no link is followed, and a file that
// never got its name is removed.
func TestSweepIgnoresTheRest(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for _, path := range []string{outside, filepath.Join(folder, "notes"), filepath.Join(folder, ".new-0123456789ab"), filepath.Join(folder, "0123456789AB")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "ba9876543210")); err != nil {
		t.Fatal(err)
	}
	got, err := Sweep(t.Context(), SweepConfig{Folder: folder})
	if len(got) != 0 || err == nil || !strings.Contains(err.Error(), "ba9876543210") {
		t.Errorf("Sweep = %+v, %v, want nothing, and an error that names the link", got, err)
	}
	for path, want := range map[string]bool{outside: true, filepath.Join(folder, "notes"): true, filepath.Join(folder, "0123456789AB"): true, filepath.Join(folder, ".new-0123456789ab"): false} {
		if exists(path) != want {
			t.Errorf("%s there: want %v", filepath.Base(path), want)
		}
	}
	if got, err := Sweep(t.Context(), SweepConfig{Folder: filepath.Join(folder, "absent")}); err != nil || len(got) != 0 {
		t.Errorf("Sweep of no folder = %v, %v, want nothing", got, err)
	}
}

func TestInstanceClose(t *testing.T) {
	folder := t.TempDir()
	i, err := NewInstance(folder)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("Close left %v, %v", left, err)
	}
	if i, err := NewInstance(filepath.Join(folder, "a\x00b")); err == nil || i != nil {
		t.Errorf("NewInstance in an impossible folder = %v, %v", i, err)
	}
}

// The containers and networks of a killed worker are found by its id, on a real
// daemon, and nobody else's.
func TestSweepDocker(t *testing.T) {
	d := newDocker(t)
	image := lab.Image(t, "docker")
	folder := t.TempDir()
	dead, kill := startWorker(t, folder)
	living, _ := startWorker(t, folder)
	var names []string
	for _, id := range []string{dead, living} {
		// As a killed client leaves it: running, on its network, not removed.
		name := NewName("sweep-", id, 1)
		names = append(names, name)
		label := "--label=" + labelInstance + "=" + id
		docker(t, "network", "create", "--internal", label, name)
		docker(t, "run", "--detach", label, "--label="+labelJob+"=j", "--network="+name, "--name="+name, image, "sleep", "1000")
		t.Cleanup(func() {
			_ = exec.Command("docker", "rm", "-f", "-v", name).Run()
			_ = exec.Command("docker", "network", "rm", name).Run()
		})
	}
	kill()
	d.config.Grace = time.Second
	got := sweep(t, SweepConfig{Folder: folder, Holders: []Holder{d}})
	for _, l := range got {
		if !l.Gone || l.Instance != dead {
			t.Errorf("Sweep gave %+v, want it gone and of %s", l, dead)
		}
	}
	if len(got) != 3 { // container, network, files
		t.Errorf("Sweep = %+v, want three things", got)
	}
	if _, err := d.Inspect(t.Context(), names[0]); !errors.Is(err, ErrUnknown) {
		t.Errorf("Inspect of the dead one's = %v, want ErrUnknown", err)
	}
	if there, err := d.networkExists(t.Context(), names[0]); there || err != nil {
		t.Errorf("the dead one's network is there: %v, %v", there, err)
	}
	if state, err := d.Inspect(t.Context(), names[1]); err != nil || !state.Running {
		t.Errorf("Inspect of the living one's = %+v, %v, want it to run on", state, err)
	}
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
