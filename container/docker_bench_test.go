package container

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
)

// bareArgv returns the command line that Run would use for a job, with a cidfile
// of its own.
func bareArgv(b *testing.B, d *Docker, spec Spec) (argv []string, cid string) {
	b.Helper()
	facts, err := d.Facts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	spec = d.withDefaults(spec)
	cid = filepath.Join(b.TempDir(), "cid")
	command, err := spec.commandLine(facts.Dialect(), launch{nonce: nonce(), files: runFiles{cid: cid}})
	if err != nil {
		b.Fatal(err)
	}
	return command.Argv(), cid
}

// bare runs a client's command line as somebody would by hand.
func bare(b *testing.B, d *Docker, stdout io.Writer, args ...string) {
	b.Helper()
	cmd := exec.Command(d.path, args...)
	cmd.Env, cmd.Stdout = d.env, stdout
	if err := cmd.Run(); err != nil {
		b.Fatalf("docker %.40q: %v", args, err)
	}
}

// BenchmarkRun compares a run of true with the same command line by hand: run,
// inspect and rm, and, beside it, run --rm. One of each is an iteration, in an
// order that turns; the figures are medians.
func BenchmarkRun(b *testing.B) {
	d := newDocker(b)
	spec := smallSpec(lab.Image(b, "docker"), "true")
	rounds := map[string]func(){
		"ours": func() {
			if got, err := d.Run(context.Background(), spec, IO{}); err != nil || got.Code != 0 {
				b.Fatalf("Run = %+v, %v", got, err)
			}
		},
		"bare": func() {
			argv, cid := bareArgv(b, d, spec)
			bare(b, d, nil, argv...)
			id, err := os.ReadFile(cid)
			if err != nil {
				b.Fatal(err)
			}
			bare(b, d, io.Discard, "container", "inspect", string(id))
			bare(b, d, nil, "rm", "--force", "--volumes", string(id))
		},
		"rm": func() {
			argv, _ := bareArgv(b, d, spec)
			bare(b, d, nil, append([]string{"run", "--rm"}, argv[1:]...)...)
		},
	}
	names := []string{"ours", "bare", "rm"}
	times := map[string][]time.Duration{}
	for b.Loop() {
		for _, name := range names {
			start := time.Now()
			rounds[name]()
			times[name] = append(times[name], time.Since(start))
		}
		names = append(names[1:], names[0])
	}
	median := func(name string) float64 {
		slices.Sort(times[name])
		return times[name][len(times[name])/2].Seconds()
	}
	for _, name := range names {
		b.ReportMetric(median(name)*1000, name+"-ms")
	}
	b.ReportMetric(median("ours")/median("bare"), "ours/bare")
	b.ReportMetric(median("ours")/median("rm"), "ours/rm")
}

// BenchmarkOutput compares the rate of 1 GiB of output into a file with that of
// docker run and a shell's redirection. Both write to a file of their own, in
// turn. peak-growth-MiB is by how much this process's peak of resident memory
// grew.
func BenchmarkOutput(b *testing.B) {
	const size = 1 << 30
	d := newDocker(b)
	spec := smallSpec(lab.Image(b, "docker"), "head", "-c", strconv.Itoa(size), "/dev/zero")
	file := func() *os.File {
		f, err := os.CreateTemp(b.TempDir(), "")
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	finish := func(f *os.File) {
		if info, err := f.Stat(); err != nil || info.Size() != size {
			b.Fatalf("output of %v, %v, want %d bytes", info, err, size)
		}
		f.Close()
		os.Remove(f.Name())
	}
	rounds := []func(){
		func() {
			f := file()
			if got, err := d.Run(context.Background(), spec, IO{Log: f}); err != nil || got.Code != 0 {
				b.Fatalf("Run = %+v, %v", got, err)
			}
			finish(f)
		},
		func() {
			f := file()
			argv, cid := bareArgv(b, d, spec)
			bare(b, d, f, argv...)
			id, _ := os.ReadFile(cid)
			bare(b, d, nil, "rm", "--force", string(id))
			finish(f)
		},
	}
	before := peakMemory(b)
	var times [2][]time.Duration
	turn := 0
	for b.Loop() {
		for i := range rounds {
			which := (i + turn) % 2
			start := time.Now()
			rounds[which]()
			times[which] = append(times[which], time.Since(start))
		}
		turn++
	}
	var rate [2]float64
	for i := range times {
		slices.Sort(times[i])
		rate[i] = size / times[i][len(times[i])/2].Seconds() / 1e6
	}
	b.ReportMetric(rate[0], "ours-MB/s")
	b.ReportMetric(rate[1], "bare-MB/s")
	b.ReportMetric(rate[0]/rate[1], "ours/bare")
	b.ReportMetric(float64(peakMemory(b)-before)/1024, "peak-growth-MiB")
}

// peakMemory is this process's peak of resident memory in KiB, 0 where the
// kernel does not say.
func peakMemory(b *testing.B) int {
	b.Helper()
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	return 0
}
