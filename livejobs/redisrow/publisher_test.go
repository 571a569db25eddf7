package redisrow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/livejobs"
)

// hostOf returns what a fleet knows of the host h.
func hostOf(t testing.TB, client rueidis.Client, prefix string) (h Host, ok bool) {
	t.Helper()
	s, err := Fleet(t.Context(), client, FleetConfig{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range s.Hosts {
		if h.Name == "h" {
			return h, true
		}
	}
	return Host{}, false
}

// isLive reports whether the host h is seen with its jobs.
func isLive(t testing.TB, client rueidis.Client, prefix string) bool {
	t.Helper()
	h, ok := hostOf(t, client, prefix)
	return ok && !h.Stale && h.Jobs != nil
}

// everyMinute is the change of a host that beats once in a test.
func everyMinute(c *Config) { c.Interval = time.Minute }

func TestBeatWritesTheWholeRow(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	before := serverNow(t, client)
	newHost(t, addr, prefix, "h", everyMinute).beatOnce(t)
	after := serverNow(t, client)
	got, err := do(t, client, "HGETALL", prefix+"host:h").AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseInt(got["at"], 10, 64)
	if err != nil || at < before || at > after {
		t.Errorf("at is %q, want an instant of the server's clock from %d to %d", got["at"], before, after)
	}
	want := map[string]string{
		"name": "h", "at": got["at"], "slots": "4", "used": "1", "version": "v1.2.3",
		"jobs":     `[{"id":"job-1","p":"p1","m":4096,"c":200,"at":1700000000000}]`,
		"jobsMore": "0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the row differs (-want +got):\n%s", diff)
	}
	if ttl := do(t, client, "PTTL", prefix+"host:h").number(); ttl <= 0 || ttl > 3*60_000 {
		t.Errorf("the row lives %d ms, want three beats of a minute at most", ttl)
	}
	if score := do(t, client, "ZSCORE", prefix+"hosts", "h").text(); score != got["at"] {
		t.Errorf("the host's score is %s, want its at %s", score, got["at"])
	}
}

// TestBeatRepairs has a beat find what nothing of this package leaves.
func TestBeatRepairs(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm [][]string // P stands for the prefix
	}{
		{"an expired row written to late", [][]string{{"DEL", "P:host:h"}, {"HSET", "P:host:h", "at", "123"}}},
		{"a row with a field too many", [][]string{{"HSET", "P:host:h", "more", "x"}}},
		{"a row without a field", [][]string{{"HDEL", "P:host:h", "jobs"}}},
		{"a row that does not expire", [][]string{{"PERSIST", "P:host:h"}}},
		{"a row that is a list", [][]string{{"DEL", "P:host:h"}, {"RPUSH", "P:host:h", "x"}}},
		{"no row", [][]string{{"DEL", "P:host:h"}}},
		{"not in the index", [][]string{{"ZREM", "P:hosts", "h"}}},
		{"an index that is a string", [][]string{{"SET", "P:hosts", "x"}}},
		{"an owner that is a list", [][]string{{"DEL", "P:owner:h"}, {"RPUSH", "P:owner:h", "x"}}},
		{"nothing any more, as after a failover", [][]string{{"DEL", "P:host:h", "P:owner:h", "P:hosts"}}},
		{"no script, as after a restart", [][]string{{"SCRIPT", "FLUSH"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := lab.RedisAddr(t)
			client := openClient(t, addr)
			prefix := testPrefix(t, client)
			host := newHost(t, addr, prefix, "h", everyMinute)
			host.beatOnce(t)
			want, _ := hostOf(t, client, prefix)
			for _, words := range tt.harm {
				for i, word := range words {
					words[i] = strings.Replace(word, "P:", prefix, 1)
				}
				do(t, client, words...)
			}
			host.beatOnce(t)
			got, _ := hostOf(t, client, prefix)
			want.At = got.At
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after the next beat the host differs (-want +got):\n%s", diff)
			}
			for _, key := range []string{"host:h", "owner:h"} {
				if ttl := do(t, client, "PTTL", prefix+key).number(); ttl <= 0 || ttl > 3*60_000 {
					t.Errorf("%s lives %d ms, want three beats of a minute at most", key, ttl)
				}
			}
			if n := do(t, client, "HLEN", prefix+"host:h").number(); n != 7 {
				t.Errorf("the row has %d fields, want 7", n)
			}
		})
	}
}

// TestRefusedBeatChangesNothing has a server that is out of memory.
func TestRefusedBeatChangesNothing(t *testing.T) {
	server := lab.Redis(t)
	client := openClient(t, server.Addr)
	host := newHost(t, server.Addr, "", "h", everyMinute)
	host.beatOnce(t)
	before := do(t, client, "HGET", DefaultPrefix+"host:h", "at").text()
	do(t, client, "CONFIG", "SET", "maxmemory", "1")
	if err := host.beat(t.Context()); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("a beat without memory = %v, want the server's error", err)
	}
	do(t, client, "CONFIG", "SET", "maxmemory", "0")
	if at := do(t, client, "HGET", DefaultPrefix+"host:h", "at").text(); at != before {
		t.Errorf("the row's at is %s, want %s: nothing was changed", at, before)
	}
	host.beatOnce(t)
}

func TestRoundTrips(t *testing.T) {
	server := lab.RedisAddr(t)
	client := openClient(t, server)
	prefix := testPrefix(t, client)
	proxy := newCountingProxy(t, server)
	host := newHost(t, proxy.addr, prefix, "h", everyMinute)
	host.beatOnce(t) // connects, and loads the script
	const times = 20
	before := proxy.trips.Load()
	for range times {
		host.beatOnce(t)
	}
	if n := proxy.trips.Load() - before; n != times {
		t.Errorf("%d beats took %d round trips, want one each", times, n)
	}
	if n := proxy.conns.Load(); n != 1 {
		t.Errorf("the publisher opened %d connections, want 1", n)
	}

	fillFleet(t, client, prefix, 1000)
	counted := openClient(t, proxy.addr)
	before = proxy.trips.Load()
	for i := range times {
		s, err := Fleet(t.Context(), counted, FleetConfig{Prefix: prefix, Fresh: time.Hour, Dead: time.Hour})
		if err != nil || len(s.Hosts) != 1001 {
			t.Fatalf("Fleet() = %d hosts, %v, want 1001", len(s.Hosts), err)
		}
		if n := proxy.trips.Load() - before; i == 0 && n > 2 {
			t.Errorf("the first reading took %d round trips, want 2 at most", n)
		} else if i == 0 {
			before = proxy.trips.Load()
		}
	}
	if n := proxy.trips.Load() - before; n != times-1 {
		t.Errorf("%d further readings took %d round trips, want one each", times-1, n)
	}
}

func TestRunRemovesTheRow(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	stop := newHost(t, addr, prefix, "h", everyMinute).start(t)
	waitFor(t, "the first beat", func() bool { return isLive(t, client, prefix) })
	if err := stop(); err != nil {
		t.Errorf("Run() = %v, want nil after a clean stop", err)
	}
	if n := do(t, client, "EXISTS", prefix+"host:h", prefix+"owner:h", prefix+"hosts").number(); n != 0 {
		t.Errorf("%d keys are left, want none", n)
	}
}

// TestLeaveRemovesItsOwnRowOnly has a publisher leave that lost its name.
func TestLeaveRemovesItsOwnRowOnly(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	first, second := newHost(t, addr, prefix, "h", everyMinute), newHost(t, addr, prefix, "h", everyMinute)
	first.beatOnce(t)
	do(t, client, "DEL", prefix+"host:h", prefix+"owner:h") // as if expired
	second.beatOnce(t)
	first.leave(t.Context())
	if !isLive(t, client, prefix) {
		t.Error("the second publisher's row is gone, want the first to remove only its own")
	}
	second.leave(t.Context())
	if h, ok := hostOf(t, client, prefix); ok {
		t.Errorf("the fleet has %+v, want it gone with its publisher", h)
	}
}

func TestNameTaken(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	first := newHost(t, addr, prefix, "h", nil)
	first.start(t)
	waitFor(t, "the first beat", func() bool { return isLive(t, client, prefix) })
	second := newHost(t, addr, prefix, "h", func(c *Config) { c.Version = "v2" })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := second.Run(ctx)
	if !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "of h: ") {
		t.Errorf("Run() of a second publisher = %v, want %v and the name", err, ErrNameTaken)
	}
	first.waitBeats(t, 2)
	if h, _ := hostOf(t, client, prefix); h.Version != "v1.2.3" || h.Stale {
		t.Errorf("the host is %+v, want the first publisher's", h)
	}
}

// TestRefusedBeforeItIsSent has values that are no names and no integers.
func TestRefusedBeforeItIsSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"no server", func(c *Config) { c.Server = rueidis.ClientOption{} }, "Server: "},
		{"no hash tag", func(c *Config) { c.Prefix = "fleet:" }, "Prefix: "},
		{"an empty hash tag", func(c *Config) { c.Prefix = "a{}b{c}:" }, "Prefix: "},
		{"no host", func(c *Config) { c.Host = "" }, "Host: "},
		{"a path as host", func(c *Config) { c.Host = "/etc/passwd" }, "Host: "},
		{"a host with a line end", func(c *Config) { c.Host = "host\n" }, "Host: "},
		{"a long host", func(c *Config) { c.Host = strings.Repeat("h", 65) }, "Host: "},
		{"a sentence as version", func(c *Config) { c.Version = "built by me" }, "Version: "},
		{"no version", func(c *Config) { c.Version = "" }, "Version: "},
		{"no jobs", func(c *Config) { c.Jobs = nil }, "Jobs: "},
		{"no slots", func(c *Config) { c.Slots = nil }, "Slots: "},
		{"a negative interval", func(c *Config) { c.Interval = -1 }, "Interval: "},
		{"a long interval", func(c *Config) { c.Interval = time.Hour }, "Interval: "},
	} {
		config := Config{
			Server: options(t, "127.0.0.1:1"), Host: "h", Version: "v1", Jobs: &livejobs.Registry{},
			Slots: func() (int, int) { return 1, 0 },
		}
		tt.change(&config)
		p, err := New(config)
		if err == nil || p != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: New() = %v, %v, want an error that has %q", tt.name, p, err, tt.want)
		}
	}
}

func TestRefusedSlots(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	for _, n := range [][2]int{{-1, 0}, {4, -1}, {20_000, 0}, {4, 20_000}} {
		host := newHost(t, addr, prefix, "h", func(c *Config) { c.Slots = func() (int, int) { return n[0], n[1] } })
		want := fmt.Sprintf("%d of %d slots", n[1], n[0])
		if err := host.beat(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a beat with slots %v = %v, want an error that has %q", n, err, want)
		}
	}
	if n := do(t, client, "EXISTS", prefix+"host:h", prefix+"hosts").number(); n != 0 {
		t.Errorf("%d keys were written, want none", n)
	}
}

// TestContentRule has jobs whose texts must not leave the host as they are.
func TestContentRule(t *testing.T) {
	addr := lab.RedisAddr(t)
	client := openClient(t, addr)
	prefix := testPrefix(t, client)
	host := newHost(t, addr, prefix, "h", everyMinute)
	host.config.Jobs.Add(livejobs.Running{ID: "token=hunter2 /home/alice", Project: "alpha", At: time.UnixMilli(1)})
	host.config.Jobs.Add(livejobs.Running{ID: "job-2", Project: "/home/alice", At: time.UnixMilli(2)})
	host.beatOnce(t)
	fields, err := do(t, client, "HGETALL", prefix+"host:h").AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	for field, text := range fields {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "alice") {
			t.Errorf("%s is %q, want names, integers and digests only", field, text)
		}
	}
	if h, _ := hostOf(t, client, prefix); len(h.Jobs) != 3 || !strings.HasPrefix(h.Jobs[0].ID, "sha256:") {
		t.Errorf("the jobs are %+v, want 3, the first by its digest", h.Jobs)
	}
}

func TestJitter(t *testing.T) {
	for _, tt := range []struct {
		random float64
		want   time.Duration
	}{{0, 9 * time.Second}, {0.5, 10 * time.Second}, {0.75, 10500 * time.Millisecond}} {
		if got := jitter(10*time.Second, tt.random); got != tt.want {
			t.Errorf("jitter(10s, %v) = %v, want %v", tt.random, got, tt.want)
		}
	}
}

func TestClientOptionHidesThePassword(t *testing.T) {
	for _, url := range []string{"redis://user:hunter2@host:port/x", "hunter2", "redis://:hunter2@[::1"} {
		option, err := ClientOption(url)
		if err == nil || strings.Contains(err.Error(), "hunter2") || len(option.InitAddress) > 0 {
			t.Errorf("ClientOption(%q) = %v, %v, want an error without the password", url, option.InitAddress, err)
		}
	}
}

// TestRunWithoutAServer has a publisher stop that never had a server.
func TestRunWithoutAServer(t *testing.T) {
	host := newHost(t, "127.0.0.1:1", "", "h", everyMinute) // nothing listens there
	stop := host.start(t)
	waitFor(t, "the line that the server is away", func() bool { return host.log.count("fleet_beat_failed") == 1 })
	if err := stop(); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
}
