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

// serverNow is the server's clock in milliseconds.
func serverNow(t testing.TB, client rueidis.Client) int64 {
	t.Helper()
	parts := do(t, client, "TIME").list()
	seconds, _ := strconv.ParseInt(parts[0], 10, 64)
	micros, _ := strconv.ParseInt(parts[1], 10, 64)
	return seconds*1000 + micros/1000
}

// writeRow writes a host's row, and changes some of its fields.
func writeRow(t testing.TB, client rueidis.Client, prefix, host string, at int64, changes ...string) {
	t.Helper()
	instant := strconv.FormatInt(at, 10)
	do(t, client, "HSET", prefix+"host:"+host, "name", host, "at", instant, "slots", "4", "used", "1",
		"version", "v1", "jobs", `[{"id":"j","p":null,"at":5}]`, "jobsMore", "2")
	if len(changes) > 0 {
		do(t, client, append([]string{"HSET", prefix + "host:" + host}, changes...)...)
	}
	do(t, client, "ZADD", prefix+"hosts", instant, host)
}

// fillFleet writes n hosts of 32 jobs, 200 at a time.
func fillFleet(t testing.TB, client rueidis.Client, prefix string, n int) {
	t.Helper()
	running := make([]livejobs.Running, 32)
	for i := range running {
		running[i] = livejobs.Running{ID: fmt.Sprintf("run-0123456789-%04d", i), Project: "a-project", Mem: 4096, CPU: 200, At: aJob.At}
	}
	jobs, more := livejobs.Fields(livejobs.List(running, nil))
	at := strconv.FormatInt(serverNow(t, client), 10)
	var commands rueidis.Commands
	send := func() {
		for _, result := range client.DoMulti(context.Background(), commands...) {
			if err := result.Error(); err != nil {
				t.Fatal(err)
			}
		}
		commands = nil
	}
	for i := range n {
		host := fmt.Sprintf("host-%04d", i)
		commands = append(commands,
			client.B().Arbitrary("HSET", prefix+"host:"+host, "name", host, "at", at, "slots", "32", "used", "32",
				"version", "v1.2.3", "jobs", jobs, "jobsMore", more).Build(),
			client.B().Arbitrary("ZADD", prefix+"hosts", at, host).Build())
		if len(commands) >= 400 {
			send()
		}
	}
	send()
}

func TestFleet(t *testing.T) {
	client := openClient(t, lab.RedisAddr(t))
	prefix := testPrefix(t, client)
	now := serverNow(t, client)
	writeRow(t, client, prefix, "fresh", now)
	writeRow(t, client, prefix, "late", now-60_000)
	writeRow(t, client, prefix, "early", now+60_000)
	do(t, client, "ZADD", prefix+"hosts", strconv.FormatInt(now-90_000, 10), "expired")
	writeRow(t, client, prefix, "dead", now-3_600_000)
	writeRow(t, client, prefix, "dead-ahead", now+3_600_000)
	do(t, client, "ZADD", prefix+"hosts", "-inf", "never", "+inf", "ever")

	s, err := Fleet(t.Context(), client, FleetConfig{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string, at int64, stale bool) Host {
		return Host{Name: name, At: time.UnixMilli(at), Stale: stale, Slots: 4, Used: 1, Version: "v1",
			Jobs: []livejobs.Entry{{ID: "j", At: time.UnixMilli(5)}}, More: 2, MoreKnown: true}
	}
	want := []Host{
		row("early", now+60_000, true), row("fresh", now, false), row("late", now-60_000, true),
		{Name: "expired", At: time.UnixMilli(now - 90_000), Stale: true},
	}
	if diff := cmp.Diff(want, s.Hosts); diff != "" {
		t.Errorf("Fleet differs (-want +got):\n%s", diff)
	}
	if len(s.Skipped) != 0 || s.More != 0 || s.At.UnixMilli() < now {
		t.Errorf("Fleet = %+v, want nothing skipped, no more, and the server's clock", s)
	}
	if got := do(t, client, "ZCARD", prefix+"hosts").number(); got != 4 {
		t.Errorf("%d hosts are known after the dead were swept, want 4", got)
	}
	if n := do(t, client, "EXISTS", prefix+"host:dead", prefix+"host:dead-ahead").number(); n != 0 {
		t.Errorf("%d rows of dead hosts are left", n)
	}
}

func TestFleetOfNobody(t *testing.T) {
	client := openClient(t, lab.RedisAddr(t))
	s, err := Fleet(t.Context(), client, FleetConfig{Prefix: testPrefix(t, client)})
	if err != nil || s.Hosts != nil || s.Skipped != nil || s.At.IsZero() {
		t.Errorf("Fleet = %+v, %v, want no host", s, err)
	}
}

// Whatever another wrote is named and left out, and hides nobody.
func TestFleetOfHostileRows(t *testing.T) {
	client := openClient(t, lab.RedisAddr(t))
	prefix := testPrefix(t, client)
	now := serverNow(t, client)
	writeRow(t, client, prefix, "good", now)
	big := strings.Repeat("x", 1<<20)
	want := map[string]string{}
	hostile := func(host, why string, changes ...string) {
		writeRow(t, client, prefix, host, now, changes...)
		want[host[:min(len(host), 64)]] = why
	}
	hostile("name-of-another", "its name is another's", "name", "good")
	for i, at := range []string{"", "0", "-1", "1e3", " 1", "9007199254740992", "99999999999999999999", "\x00\xff", "NaN"} {
		hostile("at-"+strconv.Itoa(i), "its at is not an instant", "at", at)
	}
	hostile("slots", "its slots are not a number of slots", "slots", "16385")
	hostile("used", "its used is not a number of slots", "used", "-1")
	hostile("version", "its version is not one", "version", "<script>")
	for _, field := range []string{"name", "at", "slots", "used", "version", "jobs", "jobsMore"} {
		hostile("big-"+field, "its "+field+" is longer than 16384 bytes", field, big)
	}
	hostile(big, "its name is too long")
	hostile("a name; \xff\x00", "its name is not a host's")
	hostile("", "its name is not a host's")
	for _, kind := range [][]string{{"SET", "string", "x"}, {"LPUSH", "list", "x"}, {"SADD", "set", "x"}, {"ZADD", "zset", "1", "x"}, {"XADD", "stream", "*", "a", "b"}} {
		host := kind[1]
		kind[1] = prefix + "host:" + host
		do(t, client, kind...)
		do(t, client, "ZADD", prefix+"hosts", strconv.FormatInt(now, 10), host)
		want[host] = "its row is not a hash"
	}
	do(t, client, "HSET", prefix+"host:partial", "at", strconv.FormatInt(now, 10))
	do(t, client, "ZADD", prefix+"hosts", strconv.FormatInt(now, 10), "partial")
	want["partial"] = "its name is another's"

	s, err := Fleet(t.Context(), client, FleetConfig{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, skipped := range s.Skipped {
		got[skipped.Name] = skipped.Why
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the skipped rows differ (-want +got):\n%s", diff)
	}
	if len(s.Hosts) != 1 || s.Hosts[0].Name != "good" || s.Hosts[0].Stale {
		t.Errorf("Fleet = %+v, want the one good host", s.Hosts)
	}
}

// A list of jobs that can't be read costs the list, not the host.
func TestFleetOfHostileLists(t *testing.T) {
	client := openClient(t, lab.RedisAddr(t))
	prefix := testPrefix(t, client)
	for _, tt := range []struct {
		jobs, more string
		wantJobs   int // -1: not known
		wantMore   int64
		wantKnown  bool
	}{
		{"", "1", -1, 1, true},
		{"{}", "", -1, 0, false},
		{strings.Repeat("[", 16000), "x", -1, 0, false},
		{"[]", "1234567890", 0, 0, false},
		{`[1,{"id":"j","at":1},null]`, "3", 1, 5, true},
		{"\xff\x00", "-1", -1, 0, false},
	} {
		writeRow(t, client, prefix, "h", serverNow(t, client), "jobs", tt.jobs, "jobsMore", tt.more)
		s, err := Fleet(t.Context(), client, FleetConfig{Prefix: prefix})
		if err != nil || len(s.Hosts) != 1 {
			t.Fatalf("Fleet with jobs %.40q = %+v, %v, want one host", tt.jobs, s, err)
		}
		h := s.Hosts[0]
		jobs := len(h.Jobs)
		if h.Jobs == nil {
			jobs = -1
		}
		if jobs != tt.wantJobs || h.More != tt.wantMore || h.MoreKnown != tt.wantKnown {
			t.Errorf("Fleet with jobs %.40q and jobsMore %q = %d jobs, %d, %v more, want %d, %d, %v",
				tt.jobs, tt.more, jobs, h.More, h.MoreKnown, tt.wantJobs, tt.wantMore, tt.wantKnown)
		}
	}
}

func TestFleetConfigRefuses(t *testing.T) {
	for field, config := range map[string]FleetConfig{
		"Prefix": {Prefix: "none"},
		"Fresh":  {Fresh: -1},
		"Dead":   {Fresh: time.Minute, Dead: time.Second},
	} {
		s, err := Fleet(t.Context(), nil, config)
		if !cmp.Equal(s, Snapshot{}) || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), ": "+field+": ") {
			t.Errorf("Fleet(%s wrong) = %+v, %v, want an error that names it", field, s, err)
		}
	}
}

// FuzzParseRow holds that a row of any text is read or named, and that what is
// read keeps the content rule.
func FuzzParseRow(f *testing.F) {
	f.Add("h", "1", "2", "1", "v1", "[]", "0")
	f.Add("h", "x", "", "99999", "", "{", "-")
	f.Fuzz(func(t *testing.T, name, at, slots, used, version, jobs, more string) {
		h, why := parseRow("h", []string{name, at, slots, used, version, jobs, more})
		if why != "" {
			if !cmp.Equal(h, Host{}) {
				t.Errorf("parseRow = %+v beside the fault %q", h, why)
			}
			return
		}
		if h.Name != "h" || h.At.UnixMilli() <= 0 || !isSlots(h.Slots) || !isSlots(h.Used) || !versionName.MatchString(h.Version) || h.More < 0 {
			t.Errorf("parseRow(%q, %q, %q, %q, %q) = %+v", name, at, slots, used, version, h)
		}
	})
}

func BenchmarkFleet(b *testing.B) {
	server := lab.RedisAddr(b)
	client := openClient(b, server)
	prefix := testPrefix(b, client)
	fillFleet(b, client, prefix, 1000)
	proxy := newCountingProxy(b, server)
	counted := openClient(b, proxy.addr)
	read := func(c rueidis.Client) {
		s, err := Fleet(context.Background(), c, FleetConfig{Prefix: prefix, Fresh: time.Hour, Dead: 2 * time.Hour})
		if err != nil || len(s.Hosts) != 1000 || len(s.Hosts[0].Jobs) != 32 {
			b.Fatalf("Fleet = %d hosts, %v", len(s.Hosts), err)
		}
	}
	read(client)
	before := proxy.trips.Load()
	read(counted)
	trips := proxy.trips.Load() - before
	for b.Loop() {
		read(client)
	}
	b.ReportMetric(float64(trips), "roundtrips/op")
}

func BenchmarkBeat(b *testing.B) {
	server := lab.RedisAddr(b)
	client := openClient(b, server)
	proxy := newCountingProxy(b, server)
	p := newHost(b, proxy.addr, testPrefix(b, client), "h", nil)
	for i := range 32 {
		p.config.Jobs.Add(livejobs.Running{ID: "job-" + strconv.Itoa(i), Project: "p", At: aJob.At})
	}
	p.beatOnce(b)
	before, n := proxy.trips.Load(), 0
	for b.Loop() {
		if err := p.beat(context.Background()); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(proxy.trips.Load()-before)/float64(n), "roundtrips/op")
}
