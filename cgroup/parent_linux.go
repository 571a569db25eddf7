package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The leaf is made, killed and removed by hand. containerd/cgroups makes a cgroup
// by writing cgroup.subtree_control of every ancestor, which are not ours to
// write; before Linux 5.14 it waits for the processes it killed, which takes a
// job's exit code away from os/exec; and it would put D-Bus, eBPF and protobuf
// (5 MB) into the supervisor that stands at the start of every container. The
// tests hold its manager and its weights against ours.

// A Parent is a cgroup that was delegated to this program: the cgroups of jobs
// are made in it, and nothing above it is ever written. Its methods may be called
// at the same time.
type Parent struct {
	path string
	dir  dir
}

// EnableControllers turns on, for the children of the cgroup whose directory is
// path, the controllers that jobs need and that it has itself. The cgroup must have
// been delegated to this program, and hold no process: systemd's Delegate= gives
// a unit its controllers, and leaves it to the unit to hand them on. What is
// missing after that, [OpenParent] names.
func EnableControllers(path string) error {
	name := filepath.Base(path)
	d, err := openDir(path)
	if err != nil {
		return fmt.Errorf("turn on the controllers of cgroup %.*q: %w", maxName, name, cause(err))
	}
	defer d.close()
	for _, controller := range off(d.read) {
		if err := d.write("cgroup.subtree_control", "+"+controller); err != nil {
			return fmt.Errorf("turn on the controller %s of cgroup %.*q: %w", controller, maxName, name, err)
		}
	}
	return nil
}

// OpenParent takes the cgroup whose directory is path, an absolute path. It
// returns [ErrNotV2], [ErrNotDelegated] or an error that wraps [fs.ErrNotExist]
// or [fs.ErrPermission]. Close the parent when no leaf is made in it any more.
func OpenParent(path string) (*Parent, error) {
	name := filepath.Base(path)
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, fmt.Errorf("open cgroup %.*q: give its directory as an absolute path without .. or double slashes", maxName, name)
	}
	d, err := openDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open cgroup %.*q: make it first, and give it to this program: %w", maxName, name, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("open cgroup %.*q: give its folder to this user: %w", maxName, name, err)
	case err != nil:
		return nil, fmt.Errorf("open cgroup %.*q: %w", maxName, name, err)
	}
	if err := checkParent(d); err != nil {
		d.close()
		return nil, fmt.Errorf("open cgroup %.*q: %w", maxName, name, err)
	}
	return &Parent{path: path, dir: d}, nil
}

func checkParent(d dir) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(d.fd, &st); err != nil {
		return err
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return ErrNotV2
	}
	writable := unix.Faccessat(d.fd, ".", unix.W_OK, unix.AT_EACCESS) == nil
	if e := undelegated(d.read, writable); e != nil {
		return e
	}
	return nil
}

// Close lets go of the parent. Its leaves stay.
func (p *Parent) Close() error {
	p.dir.close()
	p.dir.fd = -1
	return nil
}

// Create makes the cgroup of one run, with its limits applied, and with no
// process in it. instance is the id of the worker process that owns it, name that
// of the run: both are 1 to 100 of A-Z, a-z, 0-9, _ and - ([ErrName]). A leaf of
// that name that is still there is an error that wraps [fs.ErrExist]: a used
// cgroup would hand its peaks on. On an error nothing is left behind.
func (p *Parent) Create(instance, name string, limits Limits) (*Leaf, error) {
	leaf, err := leafName(instance, name)
	if err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	if limits.Size.Mem <= 0 || limits.pids() <= 0 {
		return nil, fmt.Errorf("make cgroup %q: memory of %d MiB and %d pids: both must be above 0", leaf, limits.Size.Mem, limits.pids())
	}
	if err := unix.Mkdirat(p.dir.fd, leaf, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup %q: %w", leaf, err)
	}
	l, err := p.open(leaf)
	if err == nil {
		err = l.apply(limits)
	}
	if err != nil {
		if l != nil {
			l.release()
		}
		err = errors.Join(err, unix.Unlinkat(p.dir.fd, leaf, unix.AT_REMOVEDIR))
		return nil, fmt.Errorf("make cgroup %q: %w", leaf, err)
	}
	return l, nil
}

func (p *Parent) open(leaf string) (*Leaf, error) {
	path := filepath.Join(p.path, leaf)
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	return &Leaf{path: path, dir: d}, nil
}

// Leaves returns the names of the leaves of an instance that are there.
func (p *Parent) Leaves(instance string) ([]string, error) {
	if !isName(instance) {
		return nil, fmt.Errorf("list cgroups of instance %.*q: %w", maxName, instance, ErrName)
	}
	entries, err := os.ReadDir(p.path)
	if err != nil {
		return nil, fmt.Errorf("list cgroup %.*q: %w", maxName, filepath.Base(p.path), cause(err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && ofInstance(e.Name(), instance) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Sweep kills and removes every leaf of an instance, which must be one that is
// dead and whose lock the caller holds. It goes on past an error, and returns the
// names of the leaves that are gone.
func (p *Parent) Sweep(ctx context.Context, instance string) (removed []string, err error) {
	names, err := p.Leaves(instance)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		if err := p.sweepOne(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("sweep cgroup %q: %w", name, err))
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}

func (p *Parent) sweepOne(ctx context.Context, name string) error {
	l, err := p.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.release()
	if err := l.Kill(ctx); err != nil {
		return err
	}
	return l.Remove()
}

// cause strips the path from an error of package os.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
