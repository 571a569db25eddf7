package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// workspace is where a job finds its folder in a container.
const workspace = "/workspace"

// describe says what a job is, from its job file alone.
func (h *host) describe(allowProcess bool) func(context.Context, worker.Job) (worker.Description, error) {
	return func(_ context.Context, job worker.Job) (worker.Description, error) {
		file, err := jobFileOf(job)
		if err != nil {
			h.log.Error("job_file_bad", "job", job.ID, "error", err)
			return worker.Description{}, &worker.Refusal{Reason: "prepare-refused", Why: "job-file-bad"}
		}
		if file.Image == "" && !allowProcess {
			return worker.Description{}, &worker.Refusal{Reason: "prepare-refused", Why: "process-not-allowed"}
		}
		return worker.Description{
			Image: file.Image,
			Record: record.Run{
				Kind: "local", Folder: file.Folder, Project: file.Project, Backend: h.venues.backend(file.Image),
			},
		}, nil
	}
}

// prepare says what to run.
func (h *host) prepare(_ context.Context, p worker.Pickup) (worker.Preparation, error) {
	file, err := jobFileOf(p.Job)
	if err != nil {
		return worker.Preparation{}, &worker.Refusal{Reason: "prepare-refused", Why: "job-file-bad"}
	}
	limit, err := file.timeout()
	if err != nil {
		return worker.Preparation{}, &worker.Refusal{Reason: "prepare-refused", Why: "job-file-bad"}
	}
	spec := container.Spec{
		Args: file.Command, Env: file.Env, User: file.User, Network: file.Network, PlainCommand: !file.Runner,
	}
	switch {
	case file.Image == "":
		spec.Workdir = file.Folder
	case file.Folder != "":
		spec.Workdir = workspace
		spec.Mounts = []container.Mount{{Source: file.Folder, Target: workspace, Writable: file.Writable}}
	}
	if file.Image != "" && !slices.Contains(p.Image.Capabilities, container.ExitAuth) {
		if spec.Supervisor = h.supervisor; spec.Supervisor == nil {
			return worker.Preparation{}, fmt.Errorf("image has no supervisor and this program is not static: " +
				"build it with CGO_ENABLED=0, or name a static one with -supervisor")
		}
	}
	var input io.Reader
	if file.Input != "" {
		input = strings.NewReader(file.Input)
	}
	return worker.Preparation{Spec: spec, Input: input, TimeLimit: limit}, nil
}

// jobFileOf reads a job's data, which came through a queue, with every check of
// a job file again.
func jobFileOf(job worker.Job) (jobFile, error) {
	var name struct {
		Folder string `json:"folder"`
	}
	if err := json.Unmarshal(job.Data, &name); err != nil {
		return jobFile{}, jsonError(err)
	}
	if name.Folder != "" && !filepath.IsAbs(name.Folder) {
		return jobFile{}, fmt.Errorf(`"folder" is %.200q, want an absolute path`, name.Folder)
	}
	return parseJobFile(job.Data)
}
