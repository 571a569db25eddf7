package container

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/edgehero/dispatch/jobsize"
)

// defaultPIDs bounds the tasks of a job whose Spec names no other number.
const defaultPIDs = 512

// supervisorTarget is where a supervisor of this host is mounted.
const supervisorTarget = "/run/dispatch-supervisor"

// A Dialect is what the builder must know of a runtime and its host.
type Dialect struct {
	Podman   bool // else Docker
	CgroupV2 bool
	Systemd  bool // the runtime makes its cgroups through systemd
}

// A Command is the command line of one run.
type Command struct {
	Flags []string // of the runtime
	Image string
	Args  []string // what the image's entrypoint gets
}

// Argv returns the arguments of the runtime's client.
func (c Command) Argv() []string {
	argv := append([]string{"run"}, c.Flags...)
	argv = append(argv, c.Image)
	return append(argv, c.Args...)
}

// MemoryLimit returns the memory bound on the command line, in bytes. ok is
// false when there is none. Only the runtime's flags count, never the job's own
// arguments.
func (c Command) MemoryLimit() (bytes int64, ok bool) {
	for _, flag := range c.Flags {
		if text, found := strings.CutPrefix(flag, "--memory="); found {
			bytes, ok = memoryBytes(text)
		}
	}
	return bytes, ok
}

// memoryBytes reads a number of bytes as the runtimes write one: digits and at
// most one of the suffixes b, k, m and g. 0 bounds nothing.
func memoryBytes(text string) (int64, bool) {
	shift := 0
	if text != "" {
		switch text[len(text)-1] {
		case 'b':
			text = text[:len(text)-1]
		case 'k':
			text, shift = text[:len(text)-1], 10
		case 'm':
			text, shift = text[:len(text)-1], 20
		case 'g':
			text, shift = text[:len(text)-1], 30
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return 0, false
	}
	return int64(n) << shift, true
}

// A launch is what one run adds to its Spec.
type launch struct {
	nonce string // tells this run's container from another one of its name
	files runFiles
	key   bool // a key goes in
	input bool // something goes in, a key or the job's input
}

// Command returns the command line of the Spec in a dialect, less what belongs
// to one start alone: the files of that start and whether anything goes in. It
// returns ErrSpec when the Spec asks for what no run may have.
func (s Spec) Command(d Dialect) (Command, error) {
	return s.commandLine(d, launch{})
}

func (s Spec) commandLine(d Dialect, l launch) (Command, error) {
	if err := s.check(d); err != nil {
		return Command{}, fmt.Errorf("build the command line: %w: %w", ErrSpec, err)
	}
	var flags []string
	for _, part := range [][]string{
		s.ExtraFlags, // first: of a repeated flag the last one counts
		s.identityFlags(l),
		s.isolationFlags(d),
		s.sizeFlags(),
		s.fileFlags(d, l),
		streamFlags(l),
	} {
		flags = append(flags, part...)
	}
	return Command{flags, s.Image, s.args(l)}, nil
}

func (s Spec) identityFlags(l launch) []string {
	var flags []string
	if s.Name != "" {
		flags = append(flags, "--name="+s.Name)
	}
	if l.files.cid != "" {
		flags = append(flags, "--cidfile="+l.files.cid)
	}
	for _, label := range append(s.labels().pairs(), [2]string{labelRun, l.nonce}) {
		if label[1] != "" {
			flags = append(flags, "--label="+label[0]+"="+label[1])
		}
	}
	// The image is pinned and already there.
	return append(flags, "--pull=never")
}

func (s Spec) isolationFlags(d Dialect) []string {
	flags := []string{
		"--cap-drop=ALL",
		"--security-opt=no-new-privileges",
		"--user=" + s.user(),
		"--network=" + s.network(),
	}
	if d.CgroupV2 {
		flags = append(flags, "--cgroupns=private")
	}
	if d.Podman {
		// Podman hands the proxy variables of its own environment to jobs.
		flags = append(flags, "--http-proxy=false")
	}
	if !s.WritableRoot {
		flags = append(flags, "--read-only")
		if d.Podman {
			// Podman makes /run, /tmp and /var/tmp writable, without a size.
			flags = append(flags, "--read-only-tmpfs=false")
		}
		if !s.mounts("/tmp") {
			flags = append(flags, fmt.Sprintf("--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=%dm", s.tmp()))
		}
	}
	return flags
}

func (s Spec) sizeFlags() []string {
	flags := []string{
		fmt.Sprintf("--pids-limit=%d", s.pids()),
		fmt.Sprintf("--memory=%dm", s.Size.Mem),
		// Equal: a size is memory, and nothing is swapped past it.
		fmt.Sprintf("--memory-swap=%dm", s.Size.Mem),
		fmt.Sprintf("--cpu-shares=%d", s.shares()),
		fmt.Sprintf("--shm-size=%dm", min(s.quarter(), 1024)),
		"--ulimit=core=0",
	}
	if cpus, ok := s.CPUs.Value(); ok {
		flags = append(flags, "--cpus="+jobsize.Centi(cpus).String())
	}
	if s.CgroupParent != "" {
		flags = append(flags, "--cgroup-parent="+s.CgroupParent)
	}
	return flags
}

func (s Spec) fileFlags(d Dialect, l launch) []string {
	var flags []string
	if l.files.env != "" {
		flags = append(flags, "--env-file="+l.files.env)
	}
	for _, m := range s.Mounts {
		flags = append(flags, m.flag(d))
	}
	if l.files.exit != "" {
		flags = append(flags, Mount{Source: l.files.exit, Target: ExitDir, Writable: true}.flag(d))
	}
	if s.Workdir != "" {
		flags = append(flags, "--workdir="+s.Workdir)
	}
	if len(s.Supervisor) > 0 {
		return append(flags,
			Mount{Source: s.Supervisor[0], Target: supervisorTarget}.flag(d),
			"--entrypoint="+supervisorTarget)
	}
	if s.Entrypoint != "" {
		flags = append(flags, "--entrypoint="+s.Entrypoint)
	}
	return flags
}

func streamFlags(l launch) []string {
	flags := []string{
		"--init=false",
		"--stop-signal=SIGTERM",
		"--no-healthcheck",
		// The engine would keep all output a second time.
		"--log-driver=none",
		"--sig-proxy=false",
	}
	if l.input {
		flags = append(flags, "--interactive")
	}
	return flags
}

// args returns what the entrypoint gets.
func (s Spec) args(l launch) []string {
	if len(s.Supervisor) == 0 {
		return s.Args
	}
	exitFile := ""
	if l.files.exit != "" {
		exitFile = ExitFile
	}
	return append(s.supervisorArgs(l.key, exitFile), s.Args...)
}

// supervisorArgs returns the arguments of the Spec's own supervisor up to the
// command.
func (s Spec) supervisorArgs(key bool, exitFile string) []string {
	args := append([]string(nil), s.Supervisor[1:]...)
	if key {
		args = append(args, "--key-stdin")
	}
	if key && !s.PlainCommand {
		args = append(args, "--runner")
	}
	if s.PlainCommand {
		args = append(args, "--fail-code=2")
	}
	if exitFile != "" {
		args = append(args, "--exit-file="+exitFile)
	}
	if s.Deadline > 0 {
		args = append(args, "--deadline="+s.Deadline.Round(time.Millisecond).String())
	}
	return append(args, "--")
}
