package record

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// A death before the one write in place leaves the earlier record whole.
func TestInPlaceCutsNothingEarly(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	old := Build(sampleRun("j", 1))
	write(t, s, old)
	s.faults.random = func() string { return "0123456789ab" }
	taken := filepath.Join(s.Dir, "j.json"+tempSuffix("0123456789ab"))
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var seen Record
	readErr := errors.New("the step was not reached")
	s.faults.step = func(step string) {
		if step == "write in place" {
			seen, readErr = s.Read("j")
		}
	}
	write(t, s, Build(sampleRun("j", 2)))
	if readErr != nil || !reflect.DeepEqual(seen, old) {
		t.Errorf("Read before the write = %+v, %v, want the earlier record", seen, readErr)
	}
}

func TestPlaceholderNamesOnlyInASandbox(t *testing.T) {
	run := sampleRun("j", 1)
	run.Bundle = &Bundle{ID: "b", Variables: []string{"A"}, Placeholders: ptr(int64(1)), Plain: ptr(int64(0)), PlaceholderNames: []string{"A"}}
	for backend, want := range map[string][]string{"local": nil, "openshell": {"A"}, "openshell-bind": {"A"}} {
		run.Backend = backend
		if got := Build(run).Bundle.PlaceholderNames; !reflect.DeepEqual(got, want) {
			t.Errorf("backend %s: placeholder names = %v, want %v", backend, got, want)
		}
	}
}
