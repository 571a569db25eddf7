package container

import (
	"errors"
	"slices"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// A Podman runs jobs in containers of Podman, through its command line client.
// Where it differs from Docker the code says so by name.
type Podman struct{ *client }

var _ runtime = (*Podman)(nil)

var podmanKind = kind{
	name:       "podman",
	podman:     true,
	address:    "CONTAINER_HOST",
	parseFacts: podmanFacts,
}

// NewPodman returns a runtime for Podman. It returns ErrUnavailable when there
// is no client.
func NewPodman(config PodmanConfig) (*Podman, error) {
	c, err := newClient(podmanKind, config)
	if err != nil {
		return nil, err
	}
	return &Podman{c}, nil
}

// podmanFacts reads podman info.
func podmanFacts(info []byte) (Facts, error) {
	o, err := object(info)
	if err != nil {
		return Facts{}, err
	}
	host, _ := o.Get("host").Object()
	version, _ := o.Get("version").Object()
	security, _ := host.Get("security").Object()
	facts := Facts{
		Version: text(version.Get("Version")),
		CPUs:    positive(host.Get("cpus")),
		Memory:  positive(host.Get("memTotal")),
		Driver:  text(host.Get("cgroupManager")),
	}
	if facts.Version == "" {
		return Facts{}, errors.New("read its answer: it names no version")
	}
	if v := text(host.Get("cgroupVersion")); v == "v1" || v == "v2" {
		facts.Cgroup = v
	}
	facts.Rootless, _ = security.Get("rootless").Bool()
	facts.Unenforced = podmanUnenforced(host, facts)
	return facts, nil
}

func podmanUnenforced(host jsonval.Object, facts Facts) []string {
	switch {
	case facts.Rootless && facts.Cgroup == "v1":
		// Podman says nothing and makes no cgroup at all.
		return append(slices.Clone(sizeFlags), "--cgroup-parent")
	case facts.Rootless && facts.Driver != "systemd":
		// Nothing was delegated: what inspect shows is not in force.
		return slices.Clone(sizeFlags)
	}
	listed, ok := host.Get("cgroupControllers").List()
	if !ok || facts.Cgroup != "v2" {
		return nil
	}
	has := func(controller string) bool {
		return slices.ContainsFunc(listed, func(v jsonval.Value) bool { return text(v) == controller })
	}
	var dropped []string
	if !has("memory") {
		dropped = append(dropped, "--memory", "--memory-swap")
	}
	if !has("cpu") {
		dropped = append(dropped, "--cpu-shares", "--cpus")
	}
	if !has("pids") {
		dropped = append(dropped, "--pids-limit")
	}
	return dropped
}
