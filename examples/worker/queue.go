package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/livejobs/redisrow"
	"github.com/edgehero/dispatch/worker"
	"github.com/edgehero/dispatch/worker/spool"
	"github.com/edgehero/dispatch/worker/streams"
)

// redisFlags name the Redis server that many hosts share.
type redisFlags struct {
	address string // "" for none
	prefix  string // "" for the default of each package
}

func (r *redisFlags) bind(f *flag.FlagSet) {
	f.StringVar(&r.address, "redis", "", "the `address` of the Redis server that many hosts share: host:port or redis://user:password@host:port/number, rediss:// for TLS")
	f.StringVar(&r.prefix, "prefix", "", "what every key on that server begins with (default "+streams.DefaultPrefix+" for jobs, "+redisrow.DefaultPrefix+" for hosts)")
}

// url returns the address as the packages take it.
func (r redisFlags) url() string {
	if strings.Contains(r.address, "://") {
		return r.address
	}
	return (&url.URL{Scheme: "redis", Host: r.address}).String()
}

// queueFlags say where jobs wait.
type queueFlags struct {
	data  string
	redis redisFlags
}

func (q *queueFlags) bind(f *flag.FlagSet) {
	bindData(f, &q.data)
	q.redis.bind(f)
}

// A queue is where jobs are put into and taken from: the data folder of one host,
// or a Redis server that many hosts share.
type queue struct {
	worker.Queue
	worker.Producer
	place string // the folder, or the server's host and port
	close func() error

	// What a server has beside the jobs; nil for a folder.
	mirror   worker.Mirror
	hosts    func(context.Context) ([]string, error) // names of the live ones
	warnings func(context.Context) []string          // of how it is set up
}

// openQueue opens a queue. host is the name of the host that takes jobs, "" for
// who only submits. The error of a server that does not answer is errRedisAway.
func openQueue(flags queueFlags, host string, log *slog.Logger) (*queue, error) {
	if flags.redis.address == "" {
		s, err := spool.Open(spool.Config{Dir: filepath.Join(flags.data, "spool"), Host: host, Log: log})
		if err != nil {
			return nil, unavailablef("data folder %s: %w", flags.data, err)
		}
		return &queue{Queue: s, Producer: s, place: flags.data, close: s.Close}, nil
	}
	option, err := streams.ClientOption(flags.redis.url())
	if err != nil {
		return nil, usagef("flag -redis: %w", err)
	}
	client, err := connectRedis(option)
	if err != nil {
		return nil, err
	}
	s, err := streams.New(streams.Config{Client: client, Prefix: flags.redis.prefix, Host: host, Log: log})
	if err != nil {
		client.Close()
		return nil, usagef("%w", err)
	}
	return &queue{
		Queue: s, Producer: s, place: addressOf(option), close: func() error { client.Close(); return nil },
		mirror: s, warnings: s.Warnings,
		hosts: func(ctx context.Context) ([]string, error) { return liveHosts(ctx, client, flags.redis.prefix) },
	}, nil
}

// errRedisAway says that a server may answer later.
var errRedisAway = errors.New("no Redis server answers")

// connectRedis opens a client, which takes a server that answers.
func connectRedis(option rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(option)
	if err == nil {
		return client, nil
	}
	if _, refused := rueidis.IsRedisErr(err); refused {
		return nil, unavailablef("the Redis server at %s refuses: %w", addressOf(option), err)
	}
	return nil, unavailablef("%w at %s: %w", errRedisAway, addressOf(option), err)
}

// addressOf returns where a server is, without user and password.
func addressOf(option rueidis.ClientOption) string { return strings.Join(option.InitAddress, ", ") }

// askLimit bounds how long a command waits for a queue's answer.
const askLimit = 10 * time.Second

// withQueue opens a queue for one use, which may take longer than an answer.
func withQueue(ctx context.Context, flags queueFlags, longer time.Duration, use func(context.Context, worker.Producer) error) error {
	q, err := openQueue(flags, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit+longer)
	defer cancel()
	err = errors.Join(use(ctx, q), q.close())
	if errors.Is(err, context.DeadlineExceeded) {
		return unavailablef("the queue at %s no longer answers: %w", q.place, err)
	}
	return err
}
