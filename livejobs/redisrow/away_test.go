package redisrow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

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

// A child is a worker process of host h with one job that never ends.
type child struct {
	*exec.Cmd
	t      testing.TB
	client rueidis.Client
	prefix string
	ended  chan struct{} // closed when it is gone
}

// childNameTaken is the exit code of a child whose name is another's.
const childNameTaken = 3

func startChild(t testing.TB, addr string) *child {
	t.Helper()
	client := openClient(t, addr)
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^$"), t: t, client: client,
		prefix: testPrefix(t, client), ended: make(chan struct{})}
	c.Env = append(os.Environ(), "REDISROW_CHILD="+addr, "REDISROW_PREFIX="+c.prefix)
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // its state says how it ended
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-c.ended
	})
	c.waitLive()
	return c
}

func (c *child) signal(signal syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(signal); err != nil {
		c.t.Fatalf("signal a worker: %v", err)
	}
}

func (c *child) waitLive() {
	c.t.Helper()
	waitFor(c.t, "the host to be live", func() bool { return isLive(c.t, c.client, c.prefix) })
}

// waitExpired waits until the host has no row any more, and is stale.
func (c *child) waitExpired() {
	c.t.Helper()
	waitFor(c.t, "the row to expire", func() bool {
		h, ok := hostOf(c.t, c.client, c.prefix)
		return ok && h.Stale && h.Jobs == nil
	})
}

// A worker that was killed is stale as soon as its beats are missed, whatever it
// ran, and forgotten when it is dead.
func TestKilledWorkerIsNoticed(t *testing.T) {
	c := startChild(t, lab.RedisAddr(t))
	for range 3 { // a busy worker beats
		before, _ := hostOf(t, c.client, c.prefix)
		waitFor(t, "a further beat", func() bool {
			h, ok := hostOf(t, c.client, c.prefix)
			return ok && h.At.After(before.At)
		})
	}
	c.signal(syscall.SIGKILL)
	c.waitExpired()
	waitFor(t, "the host to be forgotten", func() bool {
		s, err := Fleet(t.Context(), c.client, FleetConfig{Prefix: c.prefix, Fresh: beatEvery, Dead: 4 * beatEvery})
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Hosts) == 0
	})
}

// A worker that starts again after it was killed waits for its own name.
func TestNameOfTheDeadIsFree(t *testing.T) {
	addr := lab.RedisAddr(t)
	c := startChild(t, addr)
	c.signal(syscall.SIGKILL)
	<-c.ended
	again := newHost(t, addr, c.prefix, "h", func(c *Config) { c.Version = "again" })
	again.start(t)
	waitFor(t, "the host's new row", func() bool {
		h, _ := hostOf(t, c.client, c.prefix)
		return h.Version == "again" && !h.Stale
	})
}

// A worker that was stopped past its row's life writes it whole again.
func TestStoppedWorkerIsBack(t *testing.T) {
	c := startChild(t, lab.RedisAddr(t))
	c.signal(syscall.SIGSTOP)
	c.waitExpired()
	c.signal(syscall.SIGCONT)
	c.waitLive()
	if n := do(t, c.client, "HLEN", c.prefix+"host:h").number(); n != 7 {
		t.Errorf("the row has %d fields, want 7", n)
	}
	if ttl := do(t, c.client, "PTTL", c.prefix+"host:h").number(); ttl == -1 {
		t.Error("the row does not expire")
	}
}

// A worker whose name another took while it was stopped is told so, and touches
// the other's row no more.
func TestStoppedWorkerLosesItsName(t *testing.T) {
	addr := lab.RedisAddr(t)
	c := startChild(t, addr)
	c.signal(syscall.SIGSTOP)
	c.waitExpired()
	other := newHost(t, addr, c.prefix, "h", func(c *Config) { c.Version = "other" })
	stop := other.start(t)
	c.waitLive()
	c.signal(syscall.SIGCONT)
	waitFor(t, "the first worker's end", func() bool {
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	})
	if code := c.ProcessState.ExitCode(); code != childNameTaken {
		t.Errorf("the first worker's exit code is %d, want %d: its name is taken", code, childNameTaken)
	}
	if h, _ := hostOf(t, c.client, c.prefix); h.Version != "other" || h.Stale {
		t.Errorf("the host is %+v, want the other's", h)
	}
	if err := stop(); err != nil {
		t.Errorf("Run() of the other = %v, want nil", err)
	}
}

// A server whose keys are gone, as after a replica was promoted, knows the whole
// fleet again after a beat.
func TestKeysLost(t *testing.T) {
	server := lab.Redis(t)
	client := openClient(t, server.Addr)
	hosts := []*testHost{}
	for i := range 3 {
		h := newHost(t, server.Addr, "", fmt.Sprintf("h%d", i), nil)
		h.start(t)
		hosts = append(hosts, h)
	}
	live := func() (n int) {
		s, err := Fleet(t.Context(), client, FleetConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range s.Hosts {
			if !h.Stale && h.Jobs != nil {
				n++
			}
		}
		return n
	}
	waitFor(t, "the fleet", func() bool { return live() == 3 })
	for range 3 {
		do(t, client, "FLUSHALL")
		do(t, client, "SCRIPT", "FLUSH")
		waitFor(t, "the fleet to be back", func() bool { return live() == 3 })
	}
	for _, h := range hosts {
		if n := h.log.count("fleet_beat_failed"); n != 0 {
			t.Errorf("%s logged %d failed beats, want none: each beat is whole", h.config.Host, n)
		}
	}
}

func TestMain(m *testing.M) {
	if addr := os.Getenv("REDISROW_CHILD"); addr != "" {
		os.Exit(work(addr, os.Getenv("REDISROW_PREFIX")))
	}
	os.Exit(m.Run())
}

// work is what a child does.
func work(addr, prefix string) (code int) {
	option, err := ClientOption("redis://" + addr)
	if err != nil {
		panic(err)
	}
	jobs := &livejobs.Registry{}
	jobs.Add(aJob)
	p, err := New(Config{
		Server: option, Prefix: prefix, Host: "h", Version: "v1", Jobs: jobs, Interval: beatEvery,
		Slots: func() (int, int) { return 1, 1 }, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	if err := p.Run(context.Background()); errors.Is(err, ErrNameTaken) {
		return childNameTaken
	}
	return 1
}
