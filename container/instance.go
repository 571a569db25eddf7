package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"

	"github.com/edgehero/dispatch/internal/instance"
)

// An Instance is one worker process. Its id stands on everything that the
// process makes outside of itself: containers, networks, cgroups, files. It
// holds the file of that name locked for as long as the process lives, so that
// the kernel, not a pid or a clock, says when an owner is gone; [Sweep] then
// removes what the owner left.
//
// The folder of the files must be on a file system of this host: over NFS a lock
// can outlive its holder, or be granted twice.
type Instance struct {
	file     *instance.File
	folder   string      // of every instance of this host
	leftover atomic.Bool // something of it may outlive it
}

// filesSuffix is the ending of an instance's private folder.
const filesSuffix = ".files"

// NewInstance makes an instance whose file lies in folder, which is made when it
// is missing and shared by all workers of this host that sweep for each other.
func NewInstance(folder string) (*Instance, error) {
	i, err := newInstance(folder)
	if err != nil {
		return nil, fmt.Errorf("make an instance: %w", withoutPath(err))
	}
	return i, nil
}

func newInstance(folder string) (*Instance, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file, err := instance.New(folder, func(string) {}, os.Rename)
	if err != nil {
		return nil, err
	}
	// Its files come after its file and go before it, so that a Sweep finds them.
	i := &Instance{file: file, folder: folder}
	if err = os.Mkdir(i.files(), 0o700); err == nil {
		err = os.Mkdir(i.clientFolder(), 0o700)
	}
	if err != nil {
		_ = i.Close()
		return nil, err
	}
	return i, nil
}

// ID returns the instance's id, 12 hex digits.
func (i *Instance) ID() string { return i.file.ID }

// Close gives the instance up: its private files are removed, and its own file
// too, unless something of it may still exist, which is then for a Sweep to
// find. It may be called again.
func (i *Instance) Close() error {
	err := os.RemoveAll(i.files())
	if err = errors.Join(err, i.file.Close(err != nil || i.leftover.Load())); err != nil {
		return fmt.Errorf("close instance %s: %w", i.ID(), withoutPath(err))
	}
	return nil
}

// files is the folder of the instance's private files.
func (i *Instance) files() string { return filepath.Join(i.folder, i.ID()+filesSuffix) }

// clientFolder is an empty configuration folder for a runtime's client.
func (i *Instance) clientFolder() string { return filepath.Join(i.files(), "client") }

// runFiles are the files of one run, each empty where the run has none.
type runFiles struct {
	folder string
	cid    string // the container's id, written by the client
	env    string // the job's environment, read by the client
	exit   string // the folder that the supervisor writes its line to
}

// newRunFiles makes the files of a run in a private folder of their own.
func (i *Instance) newRunFiles(nonce string, env []byte, key bool) (f runFiles, err error) {
	f.folder = filepath.Join(i.files(), nonce)
	if err := os.Mkdir(f.folder, 0o700); err != nil {
		return runFiles{}, fmt.Errorf("make the run's files: %w", withoutPath(err))
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(f.folder)
			f, err = runFiles{}, fmt.Errorf("make the run's files: %w", withoutPath(err))
		}
	}()
	// The client refuses a file that exists.
	f.cid = filepath.Join(f.folder, "cid")
	if len(env) > 0 {
		f.env = filepath.Join(f.folder, "env")
		if err := os.WriteFile(f.env, env, 0o600); err != nil {
			return f, err
		}
	}
	if key {
		f.exit = filepath.Join(f.folder, "exit")
		if err := os.Mkdir(f.exit, 0o700); err != nil {
			return f, err
		}
		// For the job's user, whoever that is; on the host the folder above
		// lets nobody in.
		if err := os.Chmod(f.exit, 0o777); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f runFiles) remove() error { return withoutPath(os.RemoveAll(f.folder)) }

// containerID returns the id that the client wrote, "" when it wrote none.
func (f runFiles) containerID() string {
	text, err := os.ReadFile(f.cid)
	if err != nil || !fullID.Match(text) {
		return ""
	}
	return string(text)
}

var fullID = regexp.MustCompile(`^[0-9a-f]{64}$`)
