package container

import (
	"context"
	"testing"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
)

// newDocker returns a Docker runtime of an instance of its own.
func newDocker(t testing.TB, change ...func(*DockerConfig)) *Docker {
	t.Helper()
	lab.Docker(t)
	config := DockerConfig{Instance: newTestInstance(t, t.TempDir())}
	for _, f := range change {
		f(&config)
	}
	d, err := NewDocker(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newTestInstance(t testing.TB, folder string) *Instance {
	t.Helper()
	i, err := NewInstance(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return i
}

// smallSpec is a job of 64 MiB and half a CPU.
func smallSpec(image string, command ...string) Spec {
	return Spec{
		Image:   image,
		Command: command,
		Job:     "job-1",
		Attempt: 1,
		Size:    jobsize.Size{Mem: 64, CPU: 50},
	}
}

func TestDockerSignedRun(t *testing.T) {
	d := newDocker(t)
	spec := smallSpec(lab.SupervisedImage(t, "docker"), "sh", "-c", "exit 3")
	result, err := d.Run(context.Background(), spec, IO{Key: exit.NewKey()})
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 3 || result.Auth != exit.Verified || result.Line == nil || *result.Line.Code != 3 {
		t.Errorf("Run = %+v, want code 3 and a verified line that says so", result)
	}
}
