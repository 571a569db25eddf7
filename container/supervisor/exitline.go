package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/edgehero/dispatch/exit"
	"golang.org/x/sys/unix"
)

// exitLine is the line that the supervisor writes, in the order of its fields.
type exitLine struct {
	Event     string          `json:"event"` // first: it is what a line is found by
	By        string          `json:"by"`
	Code      int             `json:"code"`
	Reason    string          `json:"reason,omitempty"`
	Resources *exit.Resources `json:"resources,omitempty"`
}

// lineFor says how the command ended, with what its cgroup measured.
func lineFor(end ending, resources *exit.Resources) exitLine {
	line := exitLine{Event: "exit", By: "supervisor", Code: end.code, Resources: resources}
	if end.sigkill && resources != nil && resources.OOMKills != nil && *resources.OOMKills > 0 {
		line.Reason = "oom-killed"
	}
	return line
}

// report writes the exit line to where it was asked for. What can't be written
// is said on standard error; the exit code stands all the same.
func (c Config) report(end ending, key exit.Key) {
	var resources *exit.Resources
	if !c.SharedCgroup {
		resources = usage()
	}
	text, err := json.Marshal(lineFor(end, resources))
	if err == nil && !key.IsZero() {
		text, err = key.Sign(text)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: make the exit line: %v\n", err)
		return
	}
	text = append(text, '\n')
	if c.ExitFile != "" {
		if err := writeFile(c.ExitFile, text); err != nil {
			fmt.Fprintf(os.Stderr, "supervisor: write the exit file: %v\n", err)
		}
	}
	// The command's output went past this process: whether it ended in a
	// newline nobody knows, and an empty line says nothing.
	if err := writeAll(1, append([]byte{'\n'}, text...)); err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: write the exit line: %v\n", err)
	}
}

// writeAll writes data to fd, in one write where the kernel takes it whole.
func writeAll(fd int, data []byte) error {
	// A command can have made the output that it shared non-blocking.
	_ = syscall.SetNonblock(fd, false)
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil && err != unix.EINTR {
			return err
		}
		data = data[max(n, 0):]
	}
	return nil
}

// writeFile replaces the file whole. The job can write to its folder: a link
// that lies there is neither followed nor kept.
func writeFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".exit-*")
	if err != nil {
		return fmt.Errorf("make a temporary file beside it: %w", cause(err))
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	return cause(err)
}

// cause is what went wrong without the path that the os package puts before it.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
