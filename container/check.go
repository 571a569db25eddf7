package container

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/edgehero/dispatch/jobsize"
)

// The least that a container works with: Docker refuses less memory, and with
// fewer tasks not even a supervisor starts.
const (
	minMemory jobsize.MiB = 6
	minPIDs   int64       = 16
)

// maxID is the highest uid or gid.
const maxID = 1<<32 - 2

// extraFlags are the flags that ExtraFlags may hold, each as --name=value. None
// takes a wall away.
var extraFlags = []string{
	"add-host", "cpuset-cpus", "cpuset-mems",
	"device-read-bps", "device-read-iops", "device-write-bps", "device-write-iops",
	"dns", "dns-option", "dns-search", "hostname", "memory-reservation",
	"runtime", "storage-opt", "ulimit",
}

var (
	containerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,199}$`)
	networkName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
	cgroupName    = regexp.MustCompile(`^/?[a-zA-Z0-9_-][a-zA-Z0-9_.@:-]*(/[a-zA-Z0-9_-][a-zA-Z0-9_.@:-]*)*$`)
)

// check returns an error for a Spec that no run may have under a dialect.
func (s Spec) check(d Dialect) error {
	for _, err := range []error{
		s.checkNames(),
		s.checkImage(),
		s.checkSize(),
		s.checkUser(),
		s.checkPaths(d),
		s.checkNetwork(),
		s.checkParent(d),
		s.checkExtraFlags(),
		s.checkSupervisor(),
		checkEnv(s.Env),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkNames() error {
	if s.Name != "" && !containerName.MatchString(s.Name) {
		return fmt.Errorf("name %.80q is not 2 to 200 of letters, digits, _, . and -, a letter or digit first", s.Name)
	}
	for _, label := range s.labels().pairs() {
		if !plainText(label[1]) {
			return fmt.Errorf("label %s: value %.80q has a control character or is not UTF-8", label[0], label[1])
		}
	}
	return nil
}

// plainText reports whether a text can travel as a label, through JSON and on
// one line of output.
func plainText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func (s Spec) checkImage() error {
	switch {
	case s.Image == "":
		return errors.New("no image is given")
	case strings.HasPrefix(s.Image, "-") || !plainText(s.Image) || strings.ContainsAny(s.Image, " \t"):
		return fmt.Errorf("image %.80q is no reference or id", s.Image)
	}
	for _, arg := range append([]string{s.Entrypoint, s.Workdir}, s.Args...) {
		if strings.Contains(arg, "\x00") {
			return errors.New("an argument of the command holds a NUL, which no program can be given")
		}
	}
	return nil
}

func (s Spec) checkSize() error {
	switch {
	case s.Size.Mem < minMemory:
		return fmt.Errorf("memory of %d MiB is below the %d MiB that a container needs", s.Size.Mem, minMemory)
	case s.Size.CPU <= 0 && s.Shares == 0:
		return fmt.Errorf("%d hundredths of a CPU are no size", s.Size.CPU)
	case s.Shares != 0 && (s.Shares < 2 || s.Shares > 262144):
		return fmt.Errorf("CPU shares of %d are not in 2..262144", s.Shares)
	case s.PIDs != 0 && s.PIDs < minPIDs:
		return fmt.Errorf("a limit of %d tasks is below the %d that a container needs", s.PIDs, minPIDs)
	case s.TmpMiB < 0:
		return fmt.Errorf("a /tmp of %d MiB is negative", s.TmpMiB)
	}
	if cpus, ok := s.CPUs.Value(); ok && cpus < 1 {
		return errors.New("a ceiling of 0 CPUs lets nothing run: leave it off")
	}
	return nil
}

func (s Spec) checkUser() error {
	if s.User == "" {
		return nil
	}
	for id := range strings.SplitSeq(s.user(), ":") {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || n > maxID || strings.Count(s.User, ":") > 1 {
			return fmt.Errorf("user %.80q is not a numeric uid or uid:gid", s.User)
		}
		if n == 0 && !s.AllowRoot {
			return fmt.Errorf("user %.80q is root or of its group, which the spec does not allow", s.User)
		}
	}
	return nil
}

func (s Spec) checkPaths(d Dialect) error {
	var targets []string
	for _, m := range s.Mounts {
		if err := m.check(d); err != nil {
			return err
		}
		target := path.Clean(m.Target)
		if target == supervisorTarget || target == ExitDir || strings.HasPrefix(target, ExitDir+"/") {
			return fmt.Errorf("mount target %.80q is kept for the supervisor", target)
		}
		if slices.Contains(targets, target) {
			return fmt.Errorf("mount target %.80q is used twice", target)
		}
		targets = append(targets, target)
	}
	if s.Workdir != "" && !path.IsAbs(s.Workdir) {
		return fmt.Errorf("working directory %.80q is not absolute", s.Workdir)
	}
	return nil
}

func (s Spec) checkNetwork() error {
	if s.Network == NetworkPrivate && s.Name == "" {
		return errors.New("a private network needs a name for the run")
	}
	if !networkName.MatchString(s.network()) {
		return fmt.Errorf("network %.80q is no network's name", s.network())
	}
	if s.Network == "host" {
		return errors.New("network \"host\" is refused: it would give the job the host's own network")
	}
	return nil
}

func (s Spec) checkParent(d Dialect) error {
	switch {
	case s.CgroupParent == "":
		return nil
	case !cgroupName.MatchString(s.CgroupParent):
		return fmt.Errorf("cgroup parent %.80q is no cgroup's path", s.CgroupParent)
	case d.Systemd && !strings.HasSuffix(s.CgroupParent, ".slice"):
		return fmt.Errorf("cgroup parent %.80q does not end in .slice, which this host's systemd asks for", s.CgroupParent)
	}
	return nil
}

func (s Spec) checkExtraFlags() error {
	for _, flag := range s.ExtraFlags {
		name, value, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !ok || value == "" || !strings.HasPrefix(flag, "--") || !slices.Contains(extraFlags, name) || !plainText(value) {
			return fmt.Errorf("extra flag %.80q is not allowed: it is none of --%s, each with =value", flag, strings.Join(extraFlags, ", --"))
		}
	}
	return nil
}

func (s Spec) checkSupervisor() error {
	if len(s.Supervisor) == 0 {
		if s.Deadline != 0 {
			return errors.New("a deadline needs a supervisor to hold it")
		}
		return nil
	}
	switch {
	case s.Entrypoint != "":
		return errors.New("an entrypoint and a supervisor are given: the supervisor is the entrypoint")
	case len(s.Args) == 0:
		return errors.New("no command is given, which a supervisor needs")
	case s.Deadline < 0:
		return fmt.Errorf("deadline %v is negative", s.Deadline)
	}
	if fault := pathFault(s.Supervisor[0]); fault != "" {
		return fmt.Errorf("supervisor path %.80q %s", s.Supervisor[0], fault)
	}
	return nil
}

// pathFault says why a path can't stand in a mount, "" when it can.
func pathFault(p string) string {
	switch {
	case !filepath.IsAbs(p):
		return "is not absolute"
	case !plainText(p):
		return "has a control character or is not UTF-8"
	case strings.ContainsAny(p, `,"`):
		return "holds a comma or a quote, which no mount can be written with"
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "goes up with .."
	}
	return ""
}
