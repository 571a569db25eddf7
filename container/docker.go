package container

import (
	"errors"
	"slices"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// A Docker runs jobs in containers of a Docker daemon, through its command line
// client. The client's own configuration of the user is not read: it would bring
// proxies into jobs.
//
// The daemon must be of this host, or see the same files at the same paths: a
// run's files are mounted from here.
type Docker struct{ *client }

var _ runtime = (*Docker)(nil)

var dockerKind = kind{
	name:       "docker",
	address:    "DOCKER_HOST",
	config:     "DOCKER_CONFIG",
	parseFacts: dockerFacts,
}

// NewDocker returns a runtime for a Docker daemon, which is not asked for yet.
// It returns ErrUnavailable when there is no client.
func NewDocker(config DockerConfig) (*Docker, error) {
	c, err := newClient(dockerKind, config)
	if err != nil {
		return nil, err
	}
	return &Docker{c}, nil
}

// dockerFacts reads docker info.
func dockerFacts(info []byte) (Facts, error) {
	o, err := object(info)
	if err != nil {
		return Facts{}, err
	}
	facts := Facts{
		Version: text(o.Get("ServerVersion")),
		CPUs:    positive(o.Get("NCPU")),
		Memory:  positive(o.Get("MemTotal")),
		Driver:  text(o.Get("CgroupDriver")),
	}
	if facts.Version == "" {
		// The client answers, with empty facts, where no daemon does.
		return Facts{}, errors.New("read its answer: it names no version of a server")
	}
	switch text(o.Get("CgroupVersion")) {
	case "1":
		facts.Cgroup = "v1"
	case "2":
		facts.Cgroup = "v2"
	}
	options, _ := o.Get("SecurityOptions").List()
	facts.Rootless = slices.ContainsFunc(options, func(v jsonval.Value) bool { return text(v) == "name=rootless" })
	facts.Unenforced = dockerUnenforced(o, facts)
	return facts, nil
}

func dockerUnenforced(o jsonval.Object, facts Facts) []string {
	if facts.Driver == "none" {
		return slices.Clone(sizeFlags) // rootless, without delegation
	}
	var dropped []string
	for _, support := range [][2]string{
		{"MemoryLimit", "--memory"},
		{"SwapLimit", "--memory-swap"},
		{"CPUShares", "--cpu-shares"},
		{"CpuCfsQuota", "--cpus"},
		{"PidsLimit", "--pids-limit"},
	} {
		if isFalse(o.Get(support[0])) {
			dropped = append(dropped, support[1])
		}
	}
	return dropped
}
