package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/edgehero/dispatch/cgroup"
)

// insideScript prints what the kernel says of a job's first process: its status,
// its cgroup's files, on cgroup v1 under the names that v2 has, and its mounts.
const insideScript = `
cat /proc/1/status
cd /sys/fs/cgroup || exit 3
if [ -e memory.max ]; then
	for f in pids.max memory.max memory.swap.max cpu.max cpu.weight; do
		[ -e $f ] && echo "$f:$(cat $f)"
	done
else
	m=$(cat memory/memory.limit_in_bytes) && echo "memory.max:$m"
	s=$(cat memory/memory.memsw.limit_in_bytes 2>/dev/null) && echo "memory.swap.max:$((s - m))"
	q=$(cat cpu/cpu.cfs_quota_us) && [ "$q" = -1 ] && q=max
	[ -n "$q" ] && echo "cpu.max:$q $(cat cpu/cpu.cfs_period_us)"
	c=$(cat cpu/cpu.shares) && echo "cpu.shares:$c"
	p=$(cat pids/pids.max) && echo "pids.max:$p"
fi
while read -r a b c d target options rest; do
	echo "mount $target $options"
done </proc/self/mountinfo
`

// inside probes what one container says of itself.
func (p probe) inside(ctx context.Context) []Check {
	folder, err := p.folder()
	if err != nil {
		return []Check{unread(Isolation, err.Error()), unread(NonRoot, err.Error()), unread(MountSet, err.Error())}
	}
	defer os.RemoveAll(folder)
	mounts := []Mount{{Source: folder, Target: "/probe/work", Writable: true}, {Source: folder, Target: "/probe/tree"}}
	out, result, err := p.shell(ctx, insideScript, func(s *Spec) { s.Mounts = mounts })
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("the probe's container ended with code %d", result.Code)
	}
	if err != nil {
		return []Check{unread(Isolation, err.Error()), unread(NonRoot, err.Error()), unread(MountSet, err.Error())}
	}
	var user, rest []cgroup.Finding
	for _, f := range p.findings(out) {
		if f.Name == "Uid" {
			user = append(user, f)
		} else {
			rest = append(rest, f)
		}
	}
	return []Check{judged(Isolation, rest), judged(NonRoot, user), p.mountSet(out, mounts)}
}

func (p probe) findings(out string) []cgroup.Finding {
	readings := cgroup.ParseReadings([]byte(out))
	findings := readings.Judge(cgroup.Limits{Size: p.spec.Size, Shares: p.spec.shares(), CPUs: p.spec.CPUs, PIDs: p.spec.pids()})
	shares, ok := readings["cpu.shares"]
	if !ok {
		return findings
	}
	// On cgroup v1 there is no weight: the kernel has the shares themselves.
	for i, f := range findings {
		if f.Name == "cpu.weight" {
			want := strconv.FormatInt(p.spec.shares(), 10)
			findings[i] = cgroup.Finding{Name: "cpu.shares", Got: shares, Want: want, Verdict: cgroup.Failed}
			if shares == want {
				findings[i].Verdict = cgroup.OK
			}
		}
	}
	return findings
}

// runtimeMounts are the mount points that runtimes make by themselves, and
// folders below which all are theirs. Podman mounts passwd and group for a user
// that the image does not know.
var (
	runtimeMounts = []string{
		"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/etc/group",
		"/run/.containerenv", "/run/secrets",
	}
	runtimeFolders = []string{"/proc", "/dev", "/sys"}
)

// mountSet holds the mounts seen inside against those of the Spec.
func (p probe) mountSet(out string, mounts []Mount) Check {
	seen := map[string]string{} // by target: ro or rw
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "mount" {
			seen[fields[1]], _, _ = strings.Cut(fields[2], ",")
		}
	}
	if len(seen) == 0 {
		return unread(MountSet, "no mount was seen")
	}
	want := map[string]string{}
	if !p.spec.WritableRoot {
		want["/"], want["/tmp"] = "ro", "rw"
	}
	for _, m := range mounts {
		want[m.Target] = "ro"
		if m.Writable {
			want[m.Target] = "rw"
		}
	}
	var values []cgroup.Finding
	add := func(target, got, want string) {
		f := cgroup.Finding{Name: target, Got: got, Want: want, Verdict: cgroup.Failed}
		if got == want {
			f.Verdict = cgroup.OK
		}
		values = append(values, f)
	}
	for target, mode := range want {
		add(target, seen[target], mode)
	}
	for target, mode := range seen {
		if _, ok := want[target]; !ok && !isRuntimeMount(target) {
			add(target, mode, "no mount")
		}
	}
	slices.SortFunc(values, func(a, b cgroup.Finding) int { return strings.Compare(a.Name, b.Name) })
	return judged(MountSet, values)
}

func isRuntimeMount(target string) bool {
	return slices.Contains(runtimeMounts, target) || slices.ContainsFunc(runtimeFolders, func(folder string) bool {
		return target == folder || strings.HasPrefix(target, folder+"/")
	})
}

// folder makes a folder that the job's user can write to.
func (p probe) folder() (string, error) {
	folder, err := os.MkdirTemp(p.config.Instance.files(), "probe-")
	if err == nil {
		err = os.Chmod(folder, 0o777)
	}
	return folder, withoutPath(err)
}

func (p probe) localFolders(ctx context.Context) []Check {
	folder, err := p.folder()
	if err != nil {
		return []Check{unread(LocalFolders, err.Error())}
	}
	defer os.RemoveAll(folder)
	token := nonce()
	if err := os.WriteFile(filepath.Join(folder, "in"), []byte(token), 0o644); err != nil {
		return []Check{unread(LocalFolders, withoutPath(err).Error())}
	}
	_, result, err := p.shell(ctx, `t=$(cat /probe/in) && echo "$t back" >/probe/out`, func(s *Spec) {
		s.Mounts = []Mount{{Source: folder, Target: "/probe", Writable: true}}
	})
	if err != nil {
		return []Check{unread(LocalFolders, err.Error())}
	}
	got, _ := os.ReadFile(filepath.Join(folder, "out"))
	if result.Code != 0 || string(got) != token+" back\n" {
		return []Check{failed(LocalFolders, "a file did not go in and out through a mount: the daemon sees other folders")}
	}
	return []Check{{Property: LocalFolders, Verdict: cgroup.OK}}
}

// imagePinning asks for an image of a registry that listens here: whoever pulls
// has to connect to it.
func (p probe) imagePinning(ctx context.Context) []Check {
	registry, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return []Check{unread(ImagePinning, "no registry could be made")}
	}
	pulled := make(chan bool, 1)
	go func() {
		defer close(pulled)
		for {
			conn, err := registry.Accept()
			if err != nil {
				return
			}
			conn.Close()
			select {
			case pulled <- true:
			default:
			}
		}
	}()
	_, result, err := p.shell(ctx, "true", func(s *Spec) { s.Image = registry.Addr().String() + "/dispatch-probe:" + nonce() })
	registry.Close()
	asked := false
	for range pulled {
		asked = true
	}
	switch {
	case asked:
		return []Check{failed(ImagePinning, "an image that is not there was asked for at its registry")}
	case errors.Is(err, ErrImageMissing):
		return []Check{{Property: ImagePinning, Verdict: cgroup.OK}}
	case err != nil:
		return []Check{unread(ImagePinning, err.Error())}
	}
	return []Check{failed(ImagePinning, fmt.Sprintf("an image that is not there ran, with code %d", result.Code))}
}

// ephemeral runs the same name twice.
func (p probe) ephemeral(ctx context.Context) []Check {
	name := NewName(p.config.Prefix+"probe-", "ephemeral", 1)
	named := func(s *Spec) { s.Name = name }
	const marks = `for d in / /tmp /var/tmp /dev/shm; do `
	_, first, err := p.shell(ctx, marks+`echo mark >$d/dispatch-probe; done 2>/dev/null; exit 0`, named)
	if err != nil {
		return []Check{unread(Ephemeral, err.Error())}
	}
	_, second, err := p.shell(ctx, marks+`[ -e $d/dispatch-probe ] && exit 1; done; exit 0`, named)
	if err != nil {
		return []Check{unread(Ephemeral, err.Error())}
	}
	if first.NeverStarted || second.NeverStarted || second.Code != 0 {
		return []Check{failed(Ephemeral, fmt.Sprintf("two runs of one name ended with %d and %d: something of the first was left", first.Code, second.Code))}
	}
	if _, err := p.Inspect(ctx, name); !errors.Is(err, ErrUnknown) {
		return []Check{failed(Ephemeral, "the container is still there after its run")}
	}
	return []Check{{Property: Ephemeral, Verdict: cgroup.OK}}
}

// jobToJob lets one job listen and another one call. The listener calls itself
// first, so that silence means a wall and not a missing program.
func (p probe) jobToJob(ctx context.Context) []Check {
	token := "dispatch-" + nonce()
	listener := `
for a in $(ip -o addr show up | awk '$2 != "lo" && $3 == "inet" {sub("/.*", "", $4); print $4}'); do all="$all $a"; done
(while :; do echo ` + token + ` | nc -l -p 4242; done) &
tries=0
until nc -w 1 127.0.0.1 4242 </dev/null | grep -q ` + token + `; do
	tries=$((tries + 1)); [ $tries -gt 50 ] && exit 9; sleep 0.1
done
echo "ready $all"; sleep 1000`
	check := unread(JobToJob, "the second job could not be run")
	err := p.during(ctx, listener, func(_, addresses string) {
		if addresses == "" {
			check = Check{Property: JobToJob, Verdict: cgroup.OK, Why: "a job has no network"}
			return
		}
		out, result, err := p.shell(ctx, `
for a in `+addresses+`; do nc -w 3 $a 4242 </dev/null; done; echo called`)
		switch {
		case err != nil:
			check = unread(JobToJob, err.Error())
		case strings.Contains(out, token):
			check = failed(JobToJob, "one job reached another one's network")
		case result.Code == 0 && strings.Contains(out, "called"):
			check = Check{Property: JobToJob, Verdict: cgroup.OK}
		}
	})
	if err != nil {
		check = unread(JobToJob, err.Error())
	}
	return []Check{check}
}

func (p probe) cgroupParent(ctx context.Context) []Check {
	if p.spec.CgroupParent == "" {
		return []Check{{Property: CgroupParent, Verdict: cgroup.OK, Why: "none is expected"}}
	}
	check := unread(CgroupParent, "the container could not be inspected")
	err := p.during(ctx, "echo ready; sleep 1000", func(name, _ string) {
		f, err := p.find(ctx, name)
		if err != nil {
			check = unread(CgroupParent, err.Error())
			return
		}
		placement := cgroup.Place(os.DirFS("/"), cgroup.Claim{
			Expected: p.spec.CgroupParent, Recorded: f.parent, PID: f.PID, Budget: p.budget,
		})
		check = Check{Property: CgroupParent, Verdict: placement.Verdict, Why: fmt.Sprint(placement.Notes)}
		if len(placement.Notes) == 0 {
			check.Why = ""
		}
		check.Values = []cgroup.Finding{{Name: "cgroup", Verdict: placement.Verdict, Got: placement.Path, Want: p.spec.CgroupParent}}
	})
	if err != nil {
		check = unread(CgroupParent, err.Error())
	}
	return []Check{check}
}
