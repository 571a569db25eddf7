package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
)

// A Leaf is the cgroup of one run. Its methods must not be called at the same
// time as Remove.
type Leaf struct {
	path string
	dir  dir
}

// Dir returns the leaf's directory.
func (l *Leaf) Dir() string { return l.path }

// FD returns the leaf's descriptor, which stays the leaf's own. A process starts
// inside the leaf, so that none of its instructions run outside, with
//
//	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: leaf.FD()}
//
// That takes Linux 5.7, and permission to write cgroup.procs of the nearest
// cgroup above both the caller and the leaf.
func (l *Leaf) FD() int { return l.dir.fd }

// Usage returns what the kernel measured of the leaf. See [Usage].
func (l *Leaf) Usage() *exit.Resources { return usage(l.dir.read) }

// Events returns the leaf's counts of memory kills; ok is false when they cannot
// be read.
func (l *Leaf) Events() (e Events, ok bool) {
	return parseEvents(l.dir.read("memory.events", make([]byte, fileSize)))
}

// MemoryLimits returns the leaf's own memory.max and the lowest above it, in
// bytes.
func (l *Leaf) MemoryLimits() (own, above jobsize.Limit) {
	return MemoryLimits(os.DirFS("/"), l.path)
}

// WatchOOM starts a watch on the leaf. See [WatchOOM].
func (l *Leaf) WatchOOM() (*OOMWatch, error) { return WatchOOM(l.path) }

// apply writes the limits, all of them: what is missing is named, once.
func (l *Leaf) apply(limits Limits) error {
	var missing NotDelegatedError
	for _, s := range limits.Settings() {
		err := l.dir.write(s.File, s.Text)
		switch {
		case err == nil:
		// Without the file, before Linux 4.19, the kernel kills one process.
		case errors.Is(err, fs.ErrNotExist) && s.File == "memory.oom.group":
		case errors.Is(err, fs.ErrNotExist):
			missing.Missing = append(missing.Missing, "the kernel has no "+s.File)
			missing.Unenforced = append(missing.Unenforced, s.File)
		default:
			return fmt.Errorf("write %s into %s: %w", s.Text, s.File, err)
		}
	}
	if len(missing.Missing) > 0 {
		return &missing
	}
	return nil
}

// write writes one text into one file of a cgroup, which the kernel made.
func (d dir) write(name, text string) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = retry(func() (int, error) { return unix.Write(fd, []byte(text)) })
	return err
}

// Kill kills every process in the leaf and below it, and returns when none is
// left or ctx ends. A leaf that is gone or empty is no error.
func (l *Leaf) Kill(ctx context.Context) error {
	if l.dir.fd < 0 {
		return nil // Removed.
	}
	err := l.emptied(ctx, func() error {
		err := l.dir.write("cgroup.kill", "1")
		if errors.Is(err, fs.ErrNotExist) { // Before Linux 5.14.
			return l.killEach()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("kill cgroup %q: %w", filepath.Base(l.path), err)
	}
	return nil
}

// killEach stands in for cgroup.kill: freeze, so that nothing forks past the
// list, kill what is listed, thaw. A freeze that fails costs another round.
func (l *Leaf) killEach() error {
	_ = l.dir.write("cgroup.freeze", "1")
	for _, dir := range tree(l.path) {
		killAll(dir)
	}
	_ = l.dir.write("cgroup.freeze", "0")
	return nil
}

// pollStep bounds one wait for the kernel's word that a cgroup is empty, after
// which ctx is looked at and the kill repeated.
const pollStep = 50 * time.Millisecond

// emptied calls kill until no process lives in the leaf or below it.
func (l *Leaf) emptied(ctx context.Context, kill func() error) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(l.dir.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, fileSize)
	for {
		n, err := retry(func() (int, error) { return unix.Pread(fd, buf, 0) })
		if isGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if live, ok := keyed(buf[:n], "populated"); ok && live == 0 {
			return nil
		}
		if err := kill(); err != nil && !isGone(err) {
			return err
		}
		// The poll answers to what changed since the read above.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, int(pollStep.Milliseconds()))
		if ctx.Err() != nil {
			return fmt.Errorf("processes may be left: %w", context.Cause(ctx))
		}
	}
}

func killAll(dir string) {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for line := range bytes.Lines(procs) {
		// A process of another pid namespace reads as 0, and kill(0) would end
		// our own group.
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Remove removes the leaf and the cgroups that the job made in it, and lets go of
// it. It may be called again. A leaf that still holds processes is an error that
// wraps [unix.EBUSY]: kill it first.
func (l *Leaf) Remove() error {
	for _, dir := range tree(l.path) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup %q: %w", filepath.Base(l.path), err)
		}
	}
	l.release()
	return nil
}

func (l *Leaf) release() {
	if l.dir.fd >= 0 {
		l.dir.close()
		l.dir.fd = -1
	}
}

// tree returns dir and the directories below it, the deepest first.
func tree(dir string) []string {
	var all []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, tree(filepath.Join(dir, e.Name()))...)
		}
	}
	return append(all, dir)
}

// isGone reports whether err says that a cgroup was removed.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
