package redisrow

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/livejobs"
)

// beatEvery is also the time that a server has to answer, on a busy machine.
const beatEvery = 200 * time.Millisecond

func options(t testing.TB, addr string) rueidis.ClientOption {
	t.Helper()
	option, err := ClientOption("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	return option
}

// openClient returns a client that ends with the test.
func openClient(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(options(t, addr))
	if err != nil {
		t.Fatalf("connect to %s: %v", addr, err)
	}
	t.Cleanup(client.Close)
	return client
}

// testPrefix returns a prefix of a test's own, whose keys go with the test.
func testPrefix(t testing.TB, client rueidis.Client) string {
	prefix := "dispatch-test:{" + rand.Text() + "}:"
	t.Cleanup(func() {
		for _, key := range do(t, client, "KEYS", prefix+"*").list() {
			do(t, client, "DEL", key)
		}
	})
	return prefix
}

type reply struct {
	t testing.TB
	rueidis.RedisResult
}

// do sends one command, which must succeed or answer nil.
func do(t testing.TB, client rueidis.Client, args ...string) reply {
	t.Helper()
	result := client.Do(context.Background(), client.B().Arbitrary(args...).Build())
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%.200q: %v", strings.Join(args, " "), err)
	}
	return reply{t, result}
}

func (r reply) list() []string {
	r.t.Helper()
	s, err := r.AsStrSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r reply) text() string { s, _ := r.ToString(); return s }

func (r reply) number() int64 {
	r.t.Helper()
	n, err := r.AsInt64()
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// A testHost publishes one job and notes its beats and its log.
type testHost struct {
	*Publisher
	beats atomic.Int64
	log   *logBuffer
}

// newHost returns a host. change may alter its config.
func newHost(t testing.TB, addr, prefix, host string, change func(*Config)) *testHost {
	t.Helper()
	h := &testHost{log: &logBuffer{}}
	config := Config{
		Server: options(t, addr), Prefix: prefix, Host: host, Version: "v1.2.3",
		Jobs: &livejobs.Registry{}, Interval: beatEvery,
		Slots: func() (int, int) { h.beats.Add(1); return 4, 1 },
		Log:   slog.New(slog.NewTextHandler(io.MultiWriter(h.log, t.Output()), nil)),
	}
	config.Jobs.Add(aJob)
	if change != nil {
		change(&config)
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	h.Publisher = p
	return h
}

var aJob = livejobs.Running{ID: "job-1", Project: "p1", Mem: 4096, CPU: 200, At: time.UnixMilli(1_700_000_000_000)}

// beatOnce publishes without a loop.
func (h *testHost) beatOnce(t testing.TB) {
	t.Helper()
	if err := h.beat(t.Context()); err != nil {
		t.Fatalf("beat: %v", err)
	}
	t.Cleanup(h.client.Close)
}

// start runs the publisher; stop ends it and returns what Run did.
func (h *testHost) start(t testing.TB) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			t.Errorf("Run does not return after its context has ended")
			return nil
		}
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// waitFor asks again and again until it is so.
func waitFor(t testing.TB, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// waitBeats waits until n further beats have begun.
func (h *testHost) waitBeats(t testing.TB, n int64) {
	t.Helper()
	from := h.beats.Load()
	waitFor(t, "beats", func() bool { return h.beats.Load() >= from+n })
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) count(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "msg="+event)
}

// A countingProxy stands before a server and counts round trips: how often a
// request follows an answer.
type countingProxy struct {
	addr  string
	trips atomic.Int64
	conns atomic.Int64
}

func newCountingProxy(t testing.TB, server string) *countingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &countingProxy{addr: l.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			running.Go(func() { p.carry(client, server) })
		}
	})
	return p
}

func (p *countingProxy) carry(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	var asked atomic.Bool
	var answers sync.WaitGroup
	answers.Go(func() {
		defer client.Close()
		pump(client, server, func() { asked.Store(false) })
	})
	pump(server, client, func() {
		if !asked.Swap(true) {
			p.trips.Add(1)
		}
	})
	server.Close()
	answers.Wait()
}

// pump copies until either side ends, and tells of each piece before it is sent.
func pump(to io.Writer, from io.Reader, each func()) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			each()
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
