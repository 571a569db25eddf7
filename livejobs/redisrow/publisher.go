package redisrow

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
)

// ErrNameTaken says that another live worker has this host's name.
var ErrNameTaken = errors.New("another live worker has this host's name")

var (
	//go:embed beat.lua
	beatText string
	//go:embed leave.lua
	leaveText string

	beatScript  = rueidis.NewLuaScript(beatText)
	leaveScript = rueidis.NewLuaScript(leaveText)
)

var (
	hostName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	versionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

// The rows expire after lifeBeats beats. A server gets the time of a beat, at
// most longestAnswer, to answer.
const (
	lifeBeats     = 3
	longestAnswer = 5 * time.Second
)

// A Config says what a [Publisher] publishes, and where.
type Config struct {
	// Server is where the registry is; see [ClientOption]. The publisher opens a
	// client of its own as soon as the server answers, and closes it.
	Server rueidis.ClientOption
	// Prefix begins every key and has a hash tag. Defaults to DefaultPrefix.
	Prefix string
	// Host is this host's name, [A-Za-z0-9][A-Za-z0-9._-]{0,63}, which no other
	// live worker of the registry may have.
	Host string
	// Version is the worker's version, [A-Za-z0-9][A-Za-z0-9._+-]{0,63}.
	Version string
	// Jobs is what runs here.
	Jobs *livejobs.Registry
	// Slots returns how many jobs this host runs at a time and how many of those
	// slots are taken, each 0..[jobsize.MaxHostSlots]. It is called at every beat
	// and must not block.
	Slots func() (slots, used int)
	// Interval is the time from beat to beat, 10 ms to 1 minute, of which up to a
	// tenth is varied at random. Defaults to 10 s.
	Interval time.Duration
	// Log takes what goes wrong, once each time it begins and ends. Defaults to
	// no log.
	Log *slog.Logger
}

// A Publisher tells a fleet what one host runs. Its one method is called once.
type Publisher struct {
	config Config
	keys   keys
	token  string // names this process among those that may want the name
	client rueidis.Client
	// rival is the instant of the last beat of whoever had the name when this
	// publisher was refused; refused says that it was.
	refused bool
	rival   string
	away    bool // the last beat failed
}

// New returns a publisher. It does not speak to the server yet.
func New(config Config) (*Publisher, error) {
	config, err := config.check()
	if err != nil {
		return nil, fmt.Errorf("make a publisher of live jobs: %w", err)
	}
	keys, err := newKeys(config.Prefix)
	if err != nil {
		return nil, fmt.Errorf("make a publisher of live jobs: %w", err)
	}
	return &Publisher{config: config, keys: keys, token: rand.Text()}, nil
}

func (c Config) check() (Config, error) {
	switch {
	case len(c.Server.InitAddress) == 0:
		return c, errors.New("Server: has no address")
	case !hostName.MatchString(c.Host):
		return c, fmt.Errorf("Host: %.80q is not a host name: want 1 to 64 letters, digits, dots, underscores and dashes, a letter or digit first", c.Host)
	case !versionName.MatchString(c.Version):
		return c, fmt.Errorf("Version: %.80q is not a version: want 1 to 64 letters, digits, dots, underscores, dashes and plus signs, a letter or digit first", c.Version)
	case c.Jobs == nil:
		return c, errors.New("Jobs: is missing")
	case c.Slots == nil:
		return c, errors.New("Slots: is missing")
	}
	if c.Interval == 0 {
		c.Interval = 10 * time.Second
	}
	if c.Interval < 10*time.Millisecond || c.Interval > time.Minute {
		return c, fmt.Errorf("Interval: is %v, want 10ms to 1m", c.Interval)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Run beats at once and then every interval until ctx ends; then it removes the
// row and returns nil. A server that is away, or refuses a beat, is tried again at
// the next one.
//
// It returns an error that is [ErrNameTaken] as soon as another worker of this
// name is seen to be alive: within two beats or so. The name of a worker that
// died is free when its row has expired, and is waited for.
func (p *Publisher) Run(ctx context.Context) error {
	defer func() {
		if p.client != nil {
			p.client.Close()
		}
	}()
	for {
		err := p.beat(ctx)
		if errors.Is(err, ErrNameTaken) {
			return err
		}
		if ctx.Err() == nil {
			p.logChange(err)
		}
		timer := time.NewTimer(jitter(p.config.Interval, mathrand.Float64()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			p.leave(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// jitter varies an interval by up to a tenth, by a random number in [0, 1).
func jitter(interval time.Duration, random float64) time.Duration {
	return interval + time.Duration((2*random-1)*float64(interval)/10)
}

// answerTime bounds how long a server is waited for.
func (p *Publisher) answerTime() time.Duration { return min(p.config.Interval, longestAnswer) }

// logChange logs a beat's outcome when it is not that of the beat before.
func (p *Publisher) logChange(err error) {
	switch {
	case err != nil && !p.away:
		p.config.Log.Warn("fleet_beat_failed", "host", p.config.Host, "error", err)
	case err == nil && p.away:
		p.config.Log.Info("fleet_beat_back", "host", p.config.Host)
	}
	p.away = err != nil
}

// beat publishes the row once.
func (p *Publisher) beat(ctx context.Context) error {
	slots, used := p.config.Slots()
	if !isSlots(slots) || !isSlots(used) {
		return fmt.Errorf("publish live jobs: %d of %d slots, want 0..%d of each", used, slots, jobsize.MaxHostSlots)
	}
	if err := p.connect(); err != nil {
		return fmt.Errorf("publish live jobs: %w", err)
	}
	jobs, more := livejobs.Fields(livejobs.List(p.config.Jobs.Jobs()))
	ctx, cancel := context.WithTimeout(ctx, p.answerTime())
	defer cancel()
	answer, err := beatScript.Exec(ctx, p.client, p.rowKeys(), []string{
		p.token, strconv.FormatInt(lifeBeats*p.config.Interval.Milliseconds(), 10),
		p.config.Host, strconv.Itoa(slots), strconv.Itoa(used), p.config.Version, jobs, more,
	}).AsStrSlice()
	if err != nil {
		return fmt.Errorf("publish live jobs: %w", err)
	}
	return p.judge(answer)
}

// judge reads a beat's answer. The one that has the name is alive when its row
// was written since it was last looked at.
func (p *Publisher) judge(answer []string) error {
	if len(answer) != 2 || answer[0] != "taken" {
		p.refused = false
		return nil
	}
	at, wasRefused, before := answer[1], p.refused, p.rival
	p.refused, p.rival = true, at
	if wasRefused && at != "" && at != before {
		return fmt.Errorf("publish live jobs of %s: %w: give each worker a name of its own", p.config.Host, ErrNameTaken)
	}
	return fmt.Errorf("publish live jobs of %s: the name is held until its last row expires", p.config.Host)
}

func isSlots(n int) bool { return n >= 0 && n <= jobsize.MaxHostSlots }

func (p *Publisher) rowKeys() []string {
	k, host := p.keys, p.config.Host
	return []string{k.row(host), k.owner(host), k.hosts()}
}

// connect opens the client, once.
func (p *Publisher) connect() error {
	if p.client != nil {
		return nil
	}
	client, err := rueidis.NewClient(p.config.Server)
	if err != nil {
		return err
	}
	p.client = client
	return nil
}

// leave removes the row, also when the last beat failed: the server may be back,
// or may have taken it. One that is away forgets the row by itself.
func (p *Publisher) leave(ctx context.Context) {
	if p.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.answerTime())
	defer cancel()
	if err := leaveScript.Exec(ctx, p.client, p.rowKeys(), []string{p.token, p.config.Host}).Error(); err != nil && !p.away {
		p.config.Log.Warn("fleet_leave_failed", "host", p.config.Host, "error", err)
	}
}
