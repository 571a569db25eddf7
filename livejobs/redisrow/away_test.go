package redisrow

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/livejobs"
)

// A server that goes and comes back, again and again, costs one line each time.
func TestServerAway(t *testing.T) {
	server := lab.Redis(t)
	b := newHost(t, server.Addr, "", "h", nil)
	server.Stop()
	b.start(t)
	const rounds = 3
	for round := 1; round <= rounds; round++ {
		waitFor(t, "the line that the server is away", func() bool { return b.log.count("fleet_beat_failed") == round })
		b.waitBeats(t, 5)
		server.Start()
		waitFor(t, "the line that it is back", func() bool { return b.log.count("fleet_beat_back") == round })
		b.waitBeats(t, 2)
		if n := b.log.count("fleet_beat_failed"); n != round {
			t.Fatalf("%d lines say that the server is away, want %d", n, round)
		}
		client := openClient(t, server.Addr)
		if n := do(t, client, "EXISTS", DefaultPrefix+"host:h").number(); n != 1 {
			t.Fatal("the row is missing after the server came back")
		}
		if round < rounds {
			server.Stop()
		}
	}
}

var evalCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// A server that hangs holds no beat up, gets no pile of them, and does not keep
// Run from ending.
func TestServerHangs(t *testing.T) {
	server := lab.Redis(t)
	client := openClient(t, server.Addr)
	calls := func() (n int64) {
		for _, found := range evalCalls.FindAllStringSubmatch(do(t, client, "INFO", "commandstats").text(), -1) {
			calls, _ := strconv.ParseInt(found[1], 10, 64)
			n += calls
		}
		return n
	}
	b := newHost(t, server.Addr, "", "h", func(c *Config) { c.Server.Dialer.Timeout = 100 * time.Millisecond })
	stop := b.start(t)
	waitFor(t, "the row", func() bool { return do(t, client, "EXISTS", DefaultPrefix+"host:h").number() == 1 })
	server.Pause()
	defer server.Resume()
	waitFor(t, "the line that the server is away", func() bool { return b.log.count("fleet_beat_failed") == 1 })
	b.waitBeats(t, 10)
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	server.Resume()
	client = openClient(t, server.Addr)
	sent := b.beats.Load()
	waitFor(t, "the server's answer", func() bool { return do(t, client, "PING").text() == "PONG" })
	if n := calls(); n > sent-8 {
		t.Errorf("the server carried out %d beats of %d, of which at least 10 were given up", n, sent)
	}
	if n := b.log.count("fleet_beat_failed"); n != 1 {
		t.Errorf("%d lines say that the server is away, want 1", n)
	}
}

// A worker that was killed is stale as soon as its beats are missed, whatever it
// ran, and forgotten when it is dead.
func TestKilledWorkerIsNoticed(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "REDISROW_CHILD="+addr, "REDISROW_PREFIX="+prefix)
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the worker said %q: %v", line, err)
	}
	fleet := func(config FleetConfig) []Host {
		config.Prefix = prefix
		s, err := Fleet(t.Context(), client, config)
		if err != nil {
			t.Fatal(err)
		}
		return s.Hosts
	}
	// A busy worker beats.
	before := time.Time{}
	for range 3 {
		waitFor(t, "a further beat", func() bool {
			h := fleet(FleetConfig{})
			return len(h) == 1 && !h[0].Stale && len(h[0].Jobs) == 1 && h[0].At.After(before)
		})
		before = fleet(FleetConfig{})[0].At
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the host to be stale", func() bool {
		h := fleet(FleetConfig{Fresh: 3 * beatEvery, Dead: time.Hour})
		return len(h) == 1 && h[0].Stale && h[0].Jobs == nil
	})
	waitFor(t, "the host to be forgotten", func() bool { return len(fleet(FleetConfig{Fresh: beatEvery, Dead: 4 * beatEvery})) == 0 })
}

func TestMain(m *testing.M) {
	if addr := os.Getenv("REDISROW_CHILD"); addr != "" {
		publishForEver(addr, os.Getenv("REDISROW_PREFIX"))
	}
	os.Exit(m.Run())
}

// publishForEver is a worker with one job that never ends.
func publishForEver(addr, prefix string) {
	option, err := ClientOption("redis://" + addr)
	if err != nil {
		panic(err)
	}
	jobs := &livejobs.Registry{}
	jobs.Add(aJob)
	p, err := New(Config{
		Server: option, Prefix: prefix, Host: "killed", Version: "v1", Jobs: jobs, Interval: beatEvery,
		Slots: func() (int, int) { return 1, 1 }, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(os.Stdout, "ready\n")
	_ = p.Run(context.Background())
}
