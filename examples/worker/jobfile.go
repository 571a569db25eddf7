package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/worker"
)

// A jobFile is a job as an operator writes it, and as it travels through the
// queue as a job's data.
type jobFile struct {
	// ID names the job. Defaults to job- and random letters.
	ID string `json:"id,omitempty"`
	// Image runs the job in a container. Without one it runs as a process of
	// this host, without walls.
	Image string `json:"image,omitempty"`
	// Command is the program and its arguments.
	Command []string `json:"command"`
	// Folder is a folder of the host that the command works in: /workspace in a
	// container. A relative one is taken from the job file's folder. It is
	// read-only to a container unless Writable is set.
	Folder   string `json:"folder,omitempty"`
	Writable bool   `json:"writable,omitempty"`
	// Env is the job's environment.
	Env map[string]string `json:"env,omitempty"`
	// Input goes to the command's standard input.
	Input string `json:"input,omitempty"`
	// Memory and CPUs are the job's size, such as 512m and 0.5.
	Memory string `json:"memory,omitempty"`
	CPUs   string `json:"cpus,omitempty"`
	// Timeout is the longest the job may run, such as 90s. Defaults to 30m.
	Timeout string `json:"timeout,omitempty"`
	// User is the numeric uid or uid:gid in a container.
	User string `json:"user,omitempty"`
	// Network is none, private or the name of a network. Defaults to none.
	Network string `json:"network,omitempty"`
	// Runner is true for a command that signs an exit line of its own.
	Runner bool `json:"runner,omitempty"`
	// Project is who the job is for, a word of [a-z0-9._-].
	Project string `json:"project,omitempty"`
	// Host is the only host that may run the job.
	Host string `json:"host,omitempty"`
}

// jobFileNote is what help says of a job file.
const jobFileNote = `JOBFILE is JSON, - is standard input: {"command": ["make", "test"], "image": "my-image"}.
Beside command, which it must have, it may have: id, image, folder, writable, env, input,
memory, cpus, timeout, user, network, runner, project, host. docs/operating.md says what
each is.`

// maxJobFile bounds a job file in bytes.
const maxJobFile = 1 << 20

// readJobFile reads a job file; - is standard input.
func (p *program) readJobFile(name string) (worker.Job, error) {
	text, err := p.readInput(name, maxJobFile)
	if err != nil {
		return worker.Job{}, usagef("reading the job file: %w", err)
	}
	file, err := parseJobFile(text)
	if err != nil {
		return worker.Job{}, usagef("job file %s: %w", filepath.Base(name), err)
	}
	if file.Folder != "" && !filepath.IsAbs(file.Folder) {
		base := "."
		if name != "-" {
			base = filepath.Dir(name)
		}
		if file.Folder, err = filepath.Abs(filepath.Join(base, file.Folder)); err != nil {
			return worker.Job{}, fmt.Errorf("finding the job's folder: %w", err)
		}
	}
	return file.job()
}

// readInput reads a file of at most limit bytes; - is standard input.
func (p *program) readInput(name string, limit int64) ([]byte, error) {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("longer than %d bytes", limit)
	}
	return text, err
}

// parseJobFile reads the JSON of a job and checks what can be checked without
// a host.
func parseJobFile(text []byte) (jobFile, error) {
	var file jobFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return jobFile{}, jsonError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return jobFile{}, errors.New("text after the JSON object")
	}
	if len(file.Command) == 0 || file.Command[0] == "" {
		return jobFile{}, errors.New(`lacks "command", a list of the program and its arguments`)
	}
	if _, err := file.timeout(); err != nil {
		return jobFile{}, err
	}
	if _, err := jobsize.Resolve(file.size(), jobsize.Request{}); err != nil {
		return jobFile{}, err
	}
	return file, nil
}

// jsonError says what is wrong with a job file in the operator's words.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w at byte %d", err, syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("holds a JSON %s, want an object", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%q holds a JSON %s, want %s", kind.Field, kind.Value, kindOf(kind.Type))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: it ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// kindOf returns the operator's words for the type of a member.
func kindOf(member reflect.Type) string {
	switch member.Kind() {
	case reflect.Slice:
		return "a list of strings"
	case reflect.Map:
		return "an object of strings"
	case reflect.Bool:
		return "true or false"
	}
	return "a string"
}

func (f jobFile) size() jobsize.Request {
	return jobsize.Request{Memory: f.Memory, CPUs: f.CPUs}
}

// timeout returns the job's own time limit, 0 for the default.
func (f jobFile) timeout() (time.Duration, error) {
	if f.Timeout == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(f.Timeout)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(`"timeout" is %.64q, want a positive duration such as 90s or 30m`, f.Timeout)
	}
	return d, nil
}

// job puts the file into the shape a queue carries.
func (f jobFile) job() (worker.Job, error) {
	if f.ID == "" {
		f.ID = "job-" + strings.ToLower(rand.Text()[:10])
	}
	data, err := json.Marshal(f)
	if err != nil {
		return worker.Job{}, fmt.Errorf("writing the job: %w", err)
	}
	return worker.Job{
		ID: f.ID, Name: "command", Data: data, Created: time.Now(), Size: f.size(), Host: f.Host,
	}, nil
}
