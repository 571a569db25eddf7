package streams

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/internal/queuetest"
	"github.com/edgehero/dispatch/worker"
)

// openClient returns a client that ends with the test.
func openClient(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	option, err := ClientOption("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(option)
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
		ctx := context.Background()
		keys, err := client.Do(ctx, client.B().Keys().Pattern(prefix+"*").Build()).AsStrSlice()
		if err != nil {
			t.Errorf("list the test's keys: %v", err)
		}
		for _, key := range keys {
			if err := client.Do(ctx, client.B().Del().Key(key).Build()).Error(); err != nil {
				t.Errorf("delete the test's key %q: %v", key, err)
			}
		}
	})
	return prefix
}

// logTo is a log that goes to the test's own.
func logTo(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func open(t testing.TB, config Config) *Queue {
	t.Helper()
	if config.Log == nil {
		config.Log = logTo(t)
	}
	q, err := New(config)
	if err != nil {
		t.Fatalf("New = %v, want no error", err)
	}
	return q
}

func TestConformance(t *testing.T) { conformance(t, lab.RedisAddr(t)) }

// TestConformanceCluster has the server be a cluster's, which refuses a script that
// touches keys of several slots.
func TestConformanceCluster(t *testing.T) {
	addr := lab.Redis(t, "--cluster-enabled", "yes").Addr
	host, port := splitAddr(t, addr)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(words ...string) string {
		text, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToString()
		if err != nil {
			t.Fatalf("%q = %v, want no error", words, err)
		}
		return text
	}
	ask("CONFIG", "SET", "cluster-announce-ip", host)
	ask("CONFIG", "SET", "cluster-announce-port", port)
	ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	until(t, "the cluster", func() bool { return strings.Contains(ask("CLUSTER", "INFO"), "cluster_state:ok") })
	conformance(t, addr)
}

func conformance(t *testing.T, addr string) {
	queuetest.Run(t, func(t *testing.T, kills bool) queuetest.Queue {
		lease := 5 * time.Minute
		if kills {
			lease = time.Second
		}
		client := openClient(t, addr)
		prefix := testPrefix(t, client)
		on := func(host string) *Queue {
			return open(t, Config{Client: client, Prefix: prefix, Host: host, Lease: lease})
		}
		return queuetest.Queue{
			Producer: on(""),
			Worker:   func(host string) worker.Queue { return on(host) },
			Kill:     func(worker.Queue) {}, // one that does not extend is gone after a lease
		}
	})
}
