package worker_test

import (
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/worker"
)

// newDockerHouse returns a house whose jobs run in real containers.
func newDockerHouse(t *testing.T, change ...func(*container.DockerConfig)) *house {
	t.Helper()
	return newHouse(t, func(i *container.Instance, log *slog.Logger) worker.Runtime {
		config := container.DockerConfig{Instance: i, Grace: time.Second, Log: log}
		for _, f := range change {
			f(&config)
		}
		d, err := container.NewDocker(config)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// Jobs of every kind go from the queue through real containers to their
// records.
func TestHouseDocker(t *testing.T) {
	lab.Docker(t)
	image, supervised, self := lab.Image(t, "docker"), lab.SupervisedImage(t, "docker"), staticSelf(t)
	v := venue{
		spec: func(command ...string) container.Spec {
			return container.Spec{Image: supervised, Args: command}
		},
		runner: func(args ...string) container.Spec {
			return container.Spec{
				Image: image, Supervisor: []string{self, "supervise"}, Args: append([]string{"/runner"}, args...),
				Mounts: []container.Mount{{Source: self, Target: "/runner"}},
			}
		},
	}
	h := newDockerHouse(t)
	facts, err := h.runtime.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := append(mainJobs(t, v), houseJob{name: "200 MB under 64 MiB", spec: v.spec(growing...), want: memoryKill(facts)})
	// Its mount is read-only, also for the tree's owner, and its network is gone
	// with it.
	jobs[0].spec.Args[2] = `touch "$0/made" 2>/dev/null && echo made; ` + jobs[0].spec.Args[2]
	jobs[0].spec.Network = container.NetworkPrivate
	h.run(jobs...)
}

// A job that names no image runs nowhere, and one whose image is not there is
// refused before anything is started.
func TestHouseDockerMissingImage(t *testing.T) {
	lab.Docker(t)
	h := newDockerHouse(t)
	h.run(houseJob{
		name: "missing image",
		spec: container.Spec{Image: "dispatch-lab-absent:none", Args: []string{"true"}, Env: map[string]string{"A": "b"}},
		want: imageMissing,
	})
	if !h.log.has("image_missing") {
		t.Errorf("the log does not say that the image is missing:\n%s", h.log.text())
	}
}

// While Docker does not run, a job waits: no attempt is counted.
func TestHouseDockerNotRunning(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		lab.Missing(t, "docker", err.Error()) // its client; a daemon is not needed
	}
	h := newDockerHouse(t, func(c *container.DockerConfig) { c.Daemon = "unix://" + t.TempDir() + "/docker.sock" })
	j := houseJob{spec: container.Spec{Image: "dispatch-lab-absent:none", Args: []string{"true"}, Env: map[string]string{"A": "b"}}}
	h.submit("job", &j)
	<-j.handedBack
	status, err := h.queue.Status(t.Context(), "job")
	if err != nil || status.State != worker.Delayed || status.Attempts != 0 {
		t.Errorf("Status = %+v, %v, want a delayed job without an attempt", status, err)
	}
	delete(h.jobs, "job") // none has a record
	h.close()
}
