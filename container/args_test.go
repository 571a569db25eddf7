package container

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/jobsize"
)

var (
	dockerV1 = Dialect{}
	dockerV2 = Dialect{CgroupV2: true}
	podmanV2 = Dialect{Podman: true, CgroupV2: true, Systemd: true}
)

// fullSpec uses every field.
func fullSpec() Spec {
	return Spec{
		Name:     "dispatch-abc-2-def",
		Image:    "sha256:0123",
		Args:     []string{"run", "--memory=1m", "it"},
		Job:      "repo:7",
		Attempt:  2,
		Instance: "0123456789ab",
		Host:     "host-1",
		Size:     jobsize.Size{Mem: 4096, CPU: 200},
		CPUs:     jobsize.Known(330),
		PIDs:     100,
		User:     "1000:1001",
		Workdir:  "/workspace",
		Mounts: []Mount{
			{Source: "/srv/jobs/7", Target: "/workspace", Writable: true},
			{Source: "/srv/tree", Target: "/tree"},
		},
		Env:          map[string]string{"A": "secret"},
		Network:      NetworkPrivate,
		TmpMiB:       200,
		CgroupParent: "jobs.slice",
		ExtraFlags:   []string{"--dns=10.0.0.1", "--runtime=runsc"},
		Supervisor:   []string{"/opt/worker", "supervise"},
		PlainCommand: true,
		Deadline:     90 * time.Minute,
	}
}

func TestCommandWhole(t *testing.T) {
	files := runFiles{folder: "/f", cid: "/f/cid", env: "/f/env", exit: "/f/exit"}
	got, err := fullSpec().commandLine(dockerV2, launch{nonce: "9", files: files, key: true, input: true})
	if err != nil {
		t.Fatal(err)
	}
	want := Command{
		Flags: []string{
			"--dns=10.0.0.1",
			"--runtime=runsc",
			"--name=dispatch-abc-2-def",
			"--cidfile=/f/cid",
			"--label=dispatch.instance=0123456789ab",
			"--label=dispatch.host=host-1",
			"--label=dispatch.job=repo:7",
			"--label=dispatch.attempt=2",
			"--label=dispatch.run=9",
			"--pull=never",
			"--cap-drop=ALL",
			"--security-opt=no-new-privileges",
			"--user=1000:1001",
			"--network=dispatch-abc-2-def",
			"--cgroupns=private",
			"--read-only",
			"--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=200m",
			"--pids-limit=100",
			"--memory=4096m",
			"--memory-swap=4096m",
			"--cpu-shares=2048",
			"--shm-size=1024m",
			"--ulimit=core=0",
			"--cpus=3.3",
			"--cgroup-parent=jobs.slice",
			"--env-file=/f/env",
			"--mount=type=bind,source=/srv/jobs/7,target=/workspace",
			"--mount=type=bind,source=/srv/tree,target=/tree,readonly",
			"--mount=type=bind,source=/f/exit,target=/run/dispatch",
			"--workdir=/workspace",
			"--mount=type=bind,source=/opt/worker,target=/run/dispatch-supervisor,readonly",
			"--entrypoint=/run/dispatch-supervisor",
			"--init=false",
			"--stop-signal=SIGTERM",
			"--no-healthcheck",
			"--log-driver=none",
			"--sig-proxy=false",
			"--interactive",
		},
		Image: "sha256:0123",
		Args: []string{
			"supervise", "--key-stdin", "--fail-code=2", "--exit-file=/run/dispatch/exit.json",
			"--deadline=1h30m0s", "--", "run", "--memory=1m", "it",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commandLine (-want +got):\n%s", diff)
	}
	argv := strings.Join(got.Argv(), " ")
	if !strings.HasPrefix(argv, "run --dns") || !strings.HasSuffix(argv, "--interactive sha256:0123 "+strings.Join(want.Args, " ")) {
		t.Errorf("Argv = %s, want run, the flags, the image, the arguments", argv)
	}
	if strings.Contains(argv, "secret") || strings.Contains(argv, "--rm") {
		t.Errorf("Argv = %s, want no value of the environment and no --rm", argv)
	}
}

// Each row changes one thing and names the flags that then appear and vanish.
func TestCommandFlagByFlag(t *testing.T) {
	tests := []struct {
		name    string
		dialect Dialect
		launch  launch
		change  func(*Spec)
		has     []string
		lacks   []string // prefixes
	}{
		{"least", dockerV1, launch{}, func(*Spec) {}, []string{
			"--user=65534:65534", "--network=none", "--pids-limit=512", "--memory=64m", "--memory-swap=64m",
			"--cpu-shares=512", "--shm-size=16m", "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=16m", "--read-only",
		}, []string{"--interactive", "--cidfile", "--env-file", "--cgroupns", "--cpus", "--cgroup-parent", "--entrypoint", "--workdir", "--http-proxy", "--name", "--mount"}},
		{"podman", podmanV2, launch{}, func(*Spec) {},
			[]string{"--http-proxy=false", "--read-only-tmpfs=false", "--cgroupns=private"}, nil},
		{"podman, writable root", podmanV2, launch{}, func(s *Spec) { s.WritableRoot = true },
			nil, []string{"--read-only", "--tmpfs"}},
		{"docker v1", dockerV1, launch{}, func(*Spec) {}, nil, []string{"--cgroupns", "--read-only-tmpfs"}},
		{"writable root", dockerV1, launch{}, func(s *Spec) { s.WritableRoot = true }, nil, []string{"--read-only", "--tmpfs"}},
		{"a /tmp of the job's own", dockerV1, launch{}, func(s *Spec) { s.Mounts = []Mount{{"/srv/t", "/tmp/", true, false}} },
			[]string{"--mount=type=bind,source=/srv/t,target=/tmp", "--read-only"}, []string{"--tmpfs"}},
		{"uid alone is its own group", dockerV1, launch{}, func(s *Spec) { s.User = "1000" }, []string{"--user=1000:1000"}, nil},
		{"root when allowed", dockerV1, launch{}, func(s *Spec) { s.User, s.AllowRoot = "0:0", true }, []string{"--user=0:0"}, nil},
		{"named network", dockerV1, launch{}, func(s *Spec) { s.Network = "jobs_net" }, []string{"--network=jobs_net"}, nil},
		{"shares of the mapping", dockerV1, launch{}, func(s *Spec) { s.Shares = 2451 }, []string{"--cpu-shares=2451"}, nil},
		{"ceiling off", dockerV1, launch{}, func(s *Spec) { s.CPUs = jobsize.Off() }, nil, []string{"--cpus"}},
		{"ceiling", dockerV1, launch{}, func(s *Spec) { s.CPUs = jobsize.Known(25) }, []string{"--cpus=0.25"}, nil},
		{"shm of a small job", dockerV1, launch{}, func(s *Spec) { s.Size.Mem = 6 }, []string{"--shm-size=1m"}, nil},
		{"shm of a large job", dockerV1, launch{}, func(s *Spec) { s.Size.Mem = 1 << 20 }, []string{"--shm-size=1024m", "--memory=1048576m"}, nil},
		{"input alone", dockerV1, launch{input: true}, func(*Spec) {}, []string{"--interactive"}, nil},
		{"entrypoint", dockerV1, launch{}, func(s *Spec) { s.Entrypoint = "/bin/sh" }, []string{"--entrypoint=/bin/sh"}, nil},
		{"relabel, docker", dockerV1, launch{}, func(s *Spec) { s.Mounts = []Mount{{"/srv/w", "/w", true, true}} },
			[]string{"--volume=/srv/w:/w:Z"}, []string{"--mount"}},
		{"relabel, podman", podmanV2, launch{}, func(s *Spec) { s.Mounts = []Mount{{"/srv/w", "/w", true, true}} },
			[]string{"--mount=type=bind,source=/srv/w,target=/w,relabel=private"}, []string{"--volume"}},
		{"parent under systemd", podmanV2, launch{}, func(s *Spec) { s.CgroupParent = "a-b.slice" }, []string{"--cgroup-parent=a-b.slice"}, nil},
		{"parent by path", dockerV1, launch{}, func(s *Spec) { s.CgroupParent = "/dispatch/jobs" }, []string{"--cgroup-parent=/dispatch/jobs"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := smallSpec("image")
			test.change(&spec)
			command, err := spec.commandLine(test.dialect, test.launch)
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range test.has {
				if countOf(command.Flags, func(f string) bool { return f == flag }) != 1 {
					t.Errorf("flags %q lack %s", command.Flags, flag)
				}
			}
			for _, name := range test.lacks {
				if countOf(command.Flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+"=") }) != 0 {
					t.Errorf("flags %q have %s", command.Flags, name)
				}
			}
		})
	}
}

func countOf(flags []string, match func(string) bool) int {
	n := 0
	for _, flag := range flags {
		if match(flag) {
			n++
		}
	}
	return n
}

func TestCommandAlwaysOn(t *testing.T) {
	always := []string{
		"--pull=never", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--ulimit=core=0", "--init=false",
		"--stop-signal=SIGTERM", "--no-healthcheck", "--log-driver=none", "--sig-proxy=false",
	}
	for _, dialect := range []Dialect{dockerV1, dockerV2, podmanV2} {
		for _, spec := range []Spec{smallSpec("image"), fullSpec()} {
			command, err := spec.Command(dialect)
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range always {
				if countOf(command.Flags, func(f string) bool { return f == flag }) != 1 {
					t.Errorf("%+v: flags %q lack %s", dialect, command.Flags, flag)
				}
			}
		}
	}
}

func TestCommandRefuses(t *testing.T) {
	tests := []struct {
		names  string // what the error has to name
		change func(*Spec)
	}{
		{"image", func(s *Spec) { s.Image = "" }},
		{"--privileged", func(s *Spec) { s.Image = "--privileged" }},
		{"a b", func(s *Spec) { s.Image = "a b" }},
		{"name", func(s *Spec) { s.Name = "-x" }},
		{"dispatch.job", func(s *Spec) { s.Job = "a\nb" }},
		{"dispatch.host", func(s *Spec) { s.Host = "a\xff" }},
		{"NUL", func(s *Spec) { s.Args = []string{"a\x00b"} }},
		{"5 MiB", func(s *Spec) { s.Size.Mem = 5 }},
		{"CPU", func(s *Spec) { s.Size.CPU = 0 }},
		{"shares of 1", func(s *Spec) { s.Shares = 1 }},
		{"262145", func(s *Spec) { s.Shares = 262145 }},
		{"1 tasks", func(s *Spec) { s.PIDs = 1 }},
		{"-1 tasks", func(s *Spec) { s.PIDs = -1 }},
		{"/tmp of -1", func(s *Spec) { s.TmpMiB = -1 }},
		{"0 CPUs", func(s *Spec) { s.CPUs = jobsize.Known(0) }},
		{"root", func(s *Spec) { s.User = "0" }},
		{"root", func(s *Spec) { s.User = "00:5" }},
		{"its group", func(s *Spec) { s.User = "5:0" }},
		{"numeric", func(s *Spec) { s.User = "nobody" }},
		{"numeric", func(s *Spec) { s.User = "1:2:3" }},
		{"numeric", func(s *Spec) { s.User = "4294967295" }},
		{"numeric", func(s *Spec) { s.User = "-1" }},
		{"not absolute", func(s *Spec) { s.Mounts = []Mount{{Source: "a", Target: "/a"}} }},
		{"not absolute", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: "a"}} }},
		{"comma", func(s *Spec) { s.Mounts = []Mount{{Source: "/a,readonly=false", Target: "/a"}} }},
		{"comma", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: "/a,b"}} }},
		{"quote", func(s *Spec) { s.Mounts = []Mount{{Source: `/a"b`, Target: "/a"}} }},
		{"control character", func(s *Spec) { s.Mounts = []Mount{{Source: "/a\nb", Target: "/a"}} }},
		{"..", func(s *Spec) { s.Mounts = []Mount{{Source: "/a/../etc", Target: "/a"}} }},
		{"whole image", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: "//"}} }},
		{"twice", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: "/t"}, {Source: "/b", Target: "/t/"}} }},
		{"kept for the supervisor", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: ExitDir}} }},
		{"kept for the supervisor", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: ExitFile}} }},
		{"kept for the supervisor", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: supervisorTarget}} }},
		{"relabelled", func(s *Spec) { s.Mounts = []Mount{{Source: "/usr", Target: "/a", Relabel: true}} }},
		{"colon", func(s *Spec) { s.Mounts = []Mount{{Source: "/a:b", Target: "/a", Relabel: true, Writable: true}} }},
		{"working directory", func(s *Spec) { s.Workdir = "here" }},
		{"host", func(s *Spec) { s.Network = "host" }},
		{"container:x", func(s *Spec) { s.Network = "container:x" }},
		{"needs a name", func(s *Spec) { s.Network = NetworkPrivate }},
		{"cgroup parent", func(s *Spec) { s.CgroupParent = "../up" }},
		{"--privileged", func(s *Spec) { s.ExtraFlags = []string{"--privileged"} }},
		{"--memory=1t", func(s *Spec) { s.ExtraFlags = []string{"--memory=1t"} }},
		{"--dns", func(s *Spec) { s.ExtraFlags = []string{"--dns", "1.1.1.1"} }},
		{"dns=1", func(s *Spec) { s.ExtraFlags = []string{"dns=1"} }},
		{"--cap-add=ALL", func(s *Spec) { s.ExtraFlags = []string{"--cap-add=ALL"} }},
		{"deadline", func(s *Spec) { s.Deadline = time.Second }},
		{"supervisor path", func(s *Spec) { s.Supervisor, s.Args = []string{"worker"}, []string{"a"} }},
		{"no command", func(s *Spec) { s.Supervisor = []string{"/worker"} }},
		{"entrypoint", func(s *Spec) { s.Supervisor, s.Args, s.Entrypoint = []string{"/worker"}, []string{"a"}, "/b" }},
		{`"LD_PRELOAD"`, func(s *Spec) { s.Env = map[string]string{"A": "b", "LD_PRELOAD": "marked\nvalue"} }},
	}
	for _, test := range tests {
		spec := smallSpec("image")
		test.change(&spec)
		command, err := spec.Command(dockerV1)
		if err == nil || !strings.Contains(err.Error(), test.names) {
			t.Errorf("Command = %v, want an error that names %q", err, test.names)
		}
		if command.Image != "" || command.Flags != nil || command.Args != nil {
			t.Errorf("Command = %+v beside an error", command)
		}
		if err != nil && strings.Contains(err.Error(), "marked") {
			t.Errorf("the error shows a value: %v", err)
		}
	}
	spec := smallSpec("image")
	spec.CgroupParent = "jobs"
	if _, err := spec.Command(podmanV2); err == nil || !strings.Contains(err.Error(), ".slice") {
		t.Errorf("Command under systemd = %v, want an error that names .slice", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	tests := []struct {
		flags []string
		want  int64 // 0: none
	}{
		{[]string{"--memory=64m"}, 64 << 20},
		{[]string{"--memory=1g"}, 1 << 30},
		{[]string{"--memory=7k"}, 7 << 10},
		{[]string{"--memory=8388608b"}, 8388608},
		{[]string{"--memory=8388608"}, 8388608},
		{[]string{"--memory=1g", "--memory=2g"}, 2 << 30},
		{[]string{"--memory-swap=1g"}, 0},
		{[]string{"--memory-reservation=1g"}, 0},
		{[]string{"--memory=0"}, 0},
		{[]string{"--memory="}, 0},
		{[]string{"--memory=-1m"}, 0},
		{[]string{"--memory=1.5g"}, 0},
		{[]string{"--memory=1t"}, 0},
		{[]string{"--memory=m"}, 0},
		{[]string{"--memory=9223372036854775807g"}, 0},
		{[]string{"--memory", "1g"}, 0},
		{nil, 0},
	}
	for _, test := range tests {
		c := Command{Flags: test.flags, Image: "image", Args: []string{"--memory=1m"}}
		got, ok := c.MemoryLimit()
		if got != test.want || ok != (test.want != 0) {
			t.Errorf("MemoryLimit of %q = %d, %v, want %d", test.flags, got, ok, test.want)
		}
	}
	for _, mem := range []jobsize.MiB{6, 64, 1000, 4096, 1 << 20} {
		spec := smallSpec("image")
		spec.Size.Mem = mem
		c, err := spec.Command(dockerV1)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := c.MemoryLimit(); !ok || got != mem.Bytes() {
			t.Errorf("MemoryLimit of a job of %d MiB = %d, %v, want %d", mem, got, ok, mem.Bytes())
		}
	}
}

func TestNewName(t *testing.T) {
	a, b := NewName("dispatch-", "repo:7", 3), NewName("dispatch-", "repo:7", 3)
	// printf %s repo:7 | sha256sum
	const want = "dispatch-2ee103b75d33-3-"
	if a == b || !strings.HasPrefix(a, want) || len(a) != len(want)+12 || !containerName.MatchString(a) {
		t.Errorf("NewName = %q and %q, want two of %q and 12 hex digits", a, b, want)
	}
}
