package container

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Who is to blame decides whether a job is tried again: a client that this host
// can't execute is no job's fault.
func TestStartError(t *testing.T) {
	for _, tt := range []struct {
		cause, kind, want error
	}{
		{syscall.EACCES, ErrUnavailable, ErrUnavailable},
		{syscall.ENOENT, ErrUnavailable, ErrUnavailable},
		{syscall.E2BIG, ErrUnavailable, ErrSpec},
		{syscall.EACCES, ErrSpec, ErrSpec},
	} {
		err := startError("docker", tt.kind, &os.PathError{Op: "fork/exec", Path: "/a/path", Err: tt.cause})
		for _, kind := range []error{ErrUnavailable, ErrSpec} {
			if errors.Is(err, kind) != (kind == tt.want) {
				t.Errorf("startError of %v, %v = %v, want it to be %v alone", tt.cause, tt.kind, err, tt.want)
			}
		}
		if !errors.Is(err, tt.cause) || strings.Contains(err.Error(), "/a/path") {
			t.Errorf("startError of %v = %v, want the cause without its path", tt.cause, err)
		}
	}
}
