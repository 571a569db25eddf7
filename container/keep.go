package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/edgehero/dispatch/jobsize"
)

// ErrNotKept says that no run of that name can be opened: it was never kept, its
// time is over, or its manifest is none.
var ErrNotKept = errors.New("run is not kept")

// A KeptRun is what is known of a run whose directory is kept.
type KeptRun struct {
	Job     string // its id
	Kind    string
	Image   string
	Backend string // the venue that it ran at
	User    string // of the container, uid or uid:gid
	// Size is what the run had, and is to have when it goes on. Retain writes
	// down none when it is zero; Open then gives the default.
	Size    jobsize.Size
	Created time.Time
	Expires time.Time
}

// KeptRuns is a folder of the directories of runs. Some are kept for a while
// after their run: beside each of those lies its manifest. A directory without
// one is a run's own and is left alone.
//
// The folder must be the worker's own and on a file system of this host: an open
// run is told by a lock. No link is followed in it, and nothing outside of it is
// touched, whatever a job or a manifest says.
type KeptRuns struct {
	root   *os.Root
	folder string
	size   jobsize.Size
}

// NewKeptRuns returns the kept runs of a folder, which must be there. size is
// the default, for manifests that were written without one. Close it after use.
func NewKeptRuns(folder string, size jobsize.Size) (*KeptRuns, error) {
	if size.Mem < minMemory || size.CPU <= 0 {
		return nil, fmt.Errorf("open the kept runs: a default size of %d MiB and %d hundredths of a CPU is none", size.Mem, size.CPU)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("open the kept runs: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the kept runs: %w", withoutPath(err))
	}
	return &KeptRuns{root, folder, size}, nil
}

// Close gives the folder up.
func (k *KeptRuns) Close() error { return withoutPath(k.root.Close()) }

// manifestSuffix is the ending of a manifest, after its directory's name;
// newSuffix that of one which is being written.
const (
	manifestSuffix = ".json"
	newSuffix      = ".new"
)

// runName is the name of a run's directory, which none of our own suffixes ends.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

func checkRunName(name string) error {
	if !runName.MatchString(name) || strings.HasSuffix(name, manifestSuffix) || strings.HasSuffix(name, newSuffix) {
		return fmt.Errorf("its name is not 1 to 200 of letters, digits, _, . and -, or ends in %s or %s", manifestSuffix, newSuffix)
	}
	return nil
}

// Retain keeps the directory of that name until run.Expires. One that can't be
// kept is removed: after an error neither it nor a manifest is left, as far as
// the error does not say so. A run that was opened and is retained again is
// closed after that.
func (k *KeptRuns) Retain(name string, run KeptRun) error {
	if err := checkRunName(name); err != nil {
		return fmt.Errorf("keep run %.80q: %w", name, err)
	}
	err := k.writeManifest(name, run)
	if err == nil {
		return nil
	}
	return fmt.Errorf("keep run %.80q: %w; it is removed", name, errors.Join(withoutPath(err), k.remove(name)))
}

func (k *KeptRuns) writeManifest(name string, run KeptRun) error {
	if err := k.checkDirectory(name); err != nil {
		return err
	}
	text, err := run.manifest()
	if err != nil {
		return err
	}
	// A run has one owner, so a file of this name is of one that died.
	temp := name + manifestSuffix + newSuffix
	if err := k.removeFile(temp); err != nil {
		return err
	}
	f, err := k.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	// Synced before it has its name: a crash leaves no half of a manifest.
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := k.root.Rename(temp, name+manifestSuffix); err != nil {
		return err
	}
	return k.sync()
}

func (k *KeptRuns) sync() error {
	folder, err := k.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (k *KeptRuns) checkDirectory(name string) error {
	info, err := k.root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is no directory")
	}
	return nil
}

// An OpenRun is a kept run that somebody goes on with. No Sweep removes it
// before it is closed.
type OpenRun struct {
	KeptRun
	// Dir is the run's directory on this host, an absolute path.
	Dir  string
	lock *os.File
}

// Close lets the run go.
func (o *OpenRun) Close() error { return withoutPath(o.lock.Close()) }

// Open opens a run that is kept at that instant. It returns ErrNotKept.
func (k *KeptRuns) Open(name string, now time.Time) (*OpenRun, error) {
	err := checkRunName(name)
	if err == nil {
		var o *OpenRun
		if o, err = k.open(name, now); err == nil {
			return o, nil
		}
	}
	return nil, fmt.Errorf("open run %.80q: %w: %w", name, ErrNotKept, withoutPath(err))
}

func (k *KeptRuns) open(name string, now time.Time) (_ *OpenRun, err error) {
	lock, err := k.lockManifest(name, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	run, err := readManifest(lock)
	if err != nil {
		return nil, err
	}
	if !now.Before(run.Expires) {
		return nil, errors.New("its time is over")
	}
	if err := k.checkDirectory(name); err != nil {
		return nil, err
	}
	if run.Size == (jobsize.Size{}) {
		run.Size = k.size
	}
	return &OpenRun{KeptRun: run, Dir: filepath.Join(k.folder, name), lock: lock}, nil
}

// lockManifest opens and locks a run's manifest, which must be a regular file
// and still the one of that name.
func (k *KeptRuns) lockManifest(name string, how int) (*os.File, error) {
	f, err := openRegular(k.root, name+manifestSuffix)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil {
		err = checkSame(k.root, name+manifestSuffix, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Sweep removes what is kept no longer at that instant, and returns the names of
// the runs that it removed. A run whose manifest can't be read as one could not
// be opened, nor would it ever expire: it goes as well. What is open stays. The
// error says what could not be removed, which a later Sweep tries again.
func (k *KeptRuns) Sweep(now time.Time) ([]string, error) {
	entries, err := fs.ReadDir(k.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("sweep the kept runs: %w", withoutPath(err))
	}
	var removed []string
	var failed []error
	for _, entry := range entries {
		name, ok := strings.CutSuffix(strings.TrimSuffix(entry.Name(), newSuffix), manifestSuffix)
		if !ok || entry.IsDir() || checkRunName(name) != nil {
			continue
		}
		gone, err := false, error(nil)
		if entry.Name() == name+manifestSuffix {
			gone, err = k.sweepOne(name, now)
		} else if k.checkDirectory(name) != nil {
			err = k.removeFile(entry.Name()) // left by one that died
		}
		if gone {
			removed = append(removed, name)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("sweep kept run %.80q: %w", name, withoutPath(err)))
		}
	}
	return removed, errors.Join(failed...)
}

func (k *KeptRuns) sweepOne(name string, now time.Time) (gone bool, err error) {
	manifest, err := k.lockManifest(name, syscall.LOCK_EX)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, fs.ErrNotExist):
		return false, nil // open, or removed meanwhile
	case errors.Is(err, errIrregular):
		return true, k.remove(name)
	case err != nil:
		return false, err
	}
	defer manifest.Close()
	run, err := readManifest(manifest)
	if err == nil && now.Before(run.Expires) && k.checkDirectory(name) == nil {
		return false, nil
	}
	err = k.remove(name)
	return err == nil, err
}

// remove removes a run's directory and then its manifest: a directory that is
// only half removed still has one, for the next Sweep to find.
func (k *KeptRuns) remove(name string) error {
	if err := k.root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove its directory: %w", withoutPath(err))
	}
	return errors.Join(k.removeFile(name+manifestSuffix+newSuffix), k.removeFile(name+manifestSuffix))
}

func (k *KeptRuns) removeFile(name string) error {
	if err := k.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return withoutPath(err)
	}
	return nil
}
