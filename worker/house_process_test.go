package worker_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/worker"
)

// newProcessHouse returns a house whose jobs are processes of this host, under
// this test binary. parent is the cgroup for their leaves, empty for none.
func newProcessHouse(t *testing.T, parent string) *house {
	t.Helper()
	return newHouse(t, func(i *container.Instance, log *slog.Logger) worker.Runtime {
		p, err := container.NewProcess(container.ProcessConfig{
			Supervisor: []string{selfPath(t), "supervise"}, Instance: i, CgroupParent: parent, Grace: time.Second, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
}

func selfPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// Without a container the same jobs end in the same records.
func TestHouseProcess(t *testing.T) {
	v := venue{
		spec: func(command ...string) container.Spec { return container.Spec{Args: command} },
		runner: func(args ...string) container.Spec {
			return container.Spec{Args: append([]string{selfPath(t)}, args...)}
		},
	}
	newProcessHouse(t, "").run(mainJobs(t, v)...)
}

// A job that was meant for a container never runs without one.
func TestHouseProcessWithImage(t *testing.T) {
	newProcessHouse(t, "").run(houseJob{
		name: "image", spec: container.Spec{Image: "busybox:latest", Args: []string{"true"}}, want: imageMissing,
	})
}
