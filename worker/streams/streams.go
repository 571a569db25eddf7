package streams

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A Config says how a [Queue] uses its server.
type Config struct {
	// Client speaks to the server; see [ClientOption]. The caller closes it,
	// after the queue's last use.
	Client rueidis.Client
	// Prefix begins every key and has a hash tag. Defaults to DefaultPrefix.
	Prefix string
	// Host is this host's name: it may run the jobs that are bound to it. A queue
	// that only submits needs none.
	Host string
	// Lease is how long a claim holds without being extended, 1 s or more, the
	// same on every host. Defaults to 30 s.
	Lease time.Duration
	// History is how long it is known how a job ended. Defaults to 1 hour.
	History time.Duration
	// RecordLife is how long a record can be read by other hosts. Defaults to
	// 7 days.
	RecordLife time.Duration
	// Log takes what goes wrong. Defaults to no log.
	Log *slog.Logger
}

// A Queue is a queue in Redis Streams, for its consumers and its producers. It
// is safe for concurrent use.
type Queue struct {
	config   Config
	keys     keys
	scripts  scripts
	consumer string
	log      *slog.Logger
	faults   faults
	// lastLook is when lost leases were last looked for, on the clock since
	// started; 0 for never.
	lastLook atomic.Int64
	started  time.Time
}

// New returns a queue. It does not speak to the server yet: one that is away is
// waited for by the methods.
func New(config Config) (*Queue, error) {
	config, err := config.check()
	if err != nil {
		return nil, fmt.Errorf("make a streams queue: %w", err)
	}
	return &Queue{
		config: config, keys: keys{config.Prefix}, scripts: newScripts(),
		consumer: config.Host + "-" + strings.ToLower(rand.Text()[:12]),
		log:      config.Log, faults: faults{log: config.Log}, started: time.Now(),
	}, nil
}

func (c Config) check() (Config, error) {
	if c.Client == nil {
		return c, errors.New("Client: is missing")
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if err := checkPrefix(c.Prefix); err != nil {
		return c, err
	}
	for _, d := range []struct {
		name         string
		value        *time.Duration
		def, atLeast time.Duration
	}{
		{"Lease", &c.Lease, 30 * time.Second, time.Second},
		{"History", &c.History, time.Hour, time.Second},
		{"RecordLife", &c.RecordLife, 7 * 24 * time.Hour, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < d.atLeast {
			return c, fmt.Errorf("%s: is %v, want %v or more", d.name, *d.value, d.atLeast)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// ClientOption returns options for the client of a queue, from an address such
// as redis://user:password@host:6379/0, rediss:// for TLS. It has no client-side
// cache, which a queue never asks, one connection that every command shares and
// a few for those that wait, and notices within 5 s that the server hangs.
func ClientOption(url string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		// Not wrapped: it quotes the address, which holds a password.
		return rueidis.ClientOption{}, errors.New("read the address of a Redis server: want redis://user:password@host:port/number")
	}
	option.DisableCache = true
	option.PipelineMultiplex = -1
	option.BlockingPoolSize = 64
	option.ReadBufferEachConn = 64 << 10
	option.WriteBufferEachConn = 64 << 10
	option.ConnWriteTimeout = 5 * time.Second
	return option, nil
}

func millis(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 0), 10)
}
