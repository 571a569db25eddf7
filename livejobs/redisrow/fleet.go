package redisrow

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/livejobs"
)

//go:embed fleet.lua
var fleetText string

var fleetScript = rueidis.NewLuaScript(fleetText)

// What is read of a fleet at most: hosts, bytes of a name, of a field and of all
// fields. livejobs reads no list longer than maxField.
const (
	maxHosts = 10_000
	maxName  = 64
	maxField = 16_384
	maxBytes = 64 << 20
)

// ErrConfig says that a [FleetConfig] is wrong: no server was asked.
var ErrConfig = errors.New("bad config")

// A FleetConfig says how a fleet is read.
type FleetConfig struct {
	// Prefix begins every key, as in the publishers' Config. Defaults to
	// DefaultPrefix.
	Prefix string
	// Fresh is the age up to which a beat is fresh, 1 ms or more. Defaults to
	// 30 s, three beats of the default interval.
	Fresh time.Duration
	// Dead is the age from which a host is dead and forgotten, Fresh or more.
	// Defaults to 10 minutes.
	Dead time.Duration
	// Log takes the rows that were left out. Defaults to no log.
	Log *slog.Logger
}

// A Snapshot is a fleet as its registry knew it at one instant.
type Snapshot struct {
	At    time.Time // on the server's clock
	Hosts []Host    // the latest beat first
	// Skipped are the rows that can't be read.
	Skipped []Skipped
	// More is how many further hosts there are, past the first 10 000 or 64 MiB.
	More int64
}

// A Host is what one host's row says. When Stale, its last beat is not fresh; if
// its row has expired, Name and At are all that is known.
type Host struct {
	Name    string
	At      time.Time // of its last beat, on the server's clock
	Stale   bool
	Slots   int
	Used    int
	Version string
	// Jobs are the first jobs that run there, the oldest first; nil when the list
	// can't be read or there is no row.
	Jobs []livejobs.Entry
	// More is how many further jobs run there; MoreKnown is false when that is
	// not known.
	More      int64
	MoreKnown bool
}

// A Skipped names a row that is not a host's, and why.
type Skipped struct {
	Name string // at most 64 bytes of anything, or the key of the index
	Why  string
}

// Fleet reads the rows of all hosts in one round trip, and makes the registry
// forget the dead ones, where the server takes writes. The server does nothing
// else meanwhile, some milliseconds for a thousand hosts.
//
// A row that can't be read is left out, logged and named in the snapshot. The
// error is the server's, or is [ErrConfig].
func Fleet(ctx context.Context, client rueidis.Client, config FleetConfig) (Snapshot, error) {
	s, err := readFleet(ctx, client, config)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read a fleet's live jobs: %w", err)
	}
	return s, nil
}

func readFleet(ctx context.Context, client rueidis.Client, config FleetConfig) (Snapshot, error) {
	config, err := config.check()
	if err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	keys, err := newKeys(config.Prefix)
	if err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	answer, err := fleetScript.Exec(ctx, client, []string{keys.hosts()}, []string{
		keys.rows(), strconv.FormatInt(config.Dead.Milliseconds(), 10),
		strconv.Itoa(maxHosts), strconv.Itoa(maxName), strconv.Itoa(maxField), strconv.Itoa(maxBytes),
	}).ToArray()
	if err != nil {
		return Snapshot{}, err
	}
	return config.snapshot(answer)
}

func (c FleetConfig) check() (FleetConfig, error) {
	if c.Fresh == 0 {
		c.Fresh = 30 * time.Second
	}
	if c.Dead == 0 {
		c.Dead = max(10*time.Minute, c.Fresh)
	}
	if c.Fresh < time.Millisecond {
		return c, fmt.Errorf("Fresh: is %v, want 1ms or more", c.Fresh)
	}
	if c.Dead < c.Fresh {
		return c, fmt.Errorf("Dead: is %v, want Fresh (%v) or more", c.Dead, c.Fresh)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

var errAnswer = errors.New("the server's answer has another form")

// snapshot reads the script's answer.
func (c FleetConfig) snapshot(answer []rueidis.RedisMessage) (Snapshot, error) {
	if len(answer) < 2 {
		return Snapshot{}, errAnswer
	}
	nowText, nowErr := answer[0].ToString()
	now, ok := parseInt(nowText, jsonval.MaxSafeInt)
	count, countErr := answer[1].ToInt64()
	if nowErr != nil || !ok || countErr != nil {
		return Snapshot{}, errAnswer
	}
	items := answer[2:]
	s := Snapshot{At: time.UnixMilli(now), More: max(count-int64(len(items)), 0)}
	for _, item := range readItems(items) {
		if item.why != "" {
			s.Skipped = append(s.Skipped, Skipped{item.name, item.why})
			continue
		}
		h := item.host
		h.Stale = h.Stale || h.At.Before(s.At.Add(-c.Fresh)) || h.At.After(s.At.Add(c.Fresh))
		s.Hosts = append(s.Hosts, h)
	}
	c.logSkipped(s.Skipped)
	return s, nil
}

// maxLogged is how many rows a reading names in the log.
const maxLogged = 20

func (c FleetConfig) logSkipped(skipped []Skipped) {
	for _, row := range skipped[:min(len(skipped), maxLogged)] {
		c.Log.Warn("fleet_row_skipped", "host", strconv.QuoteToASCII(row.Name), "why", row.Why)
	}
	if n := len(skipped); n > maxLogged {
		c.Log.Warn("fleet_rows_skipped", "rows", n)
	}
}

// An item is what the script found of one host: the host, or why it is none.
type item struct {
	name string
	host Host
	why  string
}

// readItems reads the items of the answer, each processor its share: the lists of
// jobs are most of the time that a fleet takes.
func readItems(answer []rueidis.RedisMessage) []item {
	items := make([]item, len(answer))
	share := max(1, len(answer)/runtime.GOMAXPROCS(0)+1)
	var all sync.WaitGroup
	for from := 0; from < len(answer); from += share {
		all.Go(func() {
			for i := from; i < min(from+share, len(answer)); i++ {
				items[i] = readItem(&answer[i])
			}
		})
	}
	all.Wait()
	return items
}

func readItem(answer *rueidis.RedisMessage) item {
	parts, err := answer.ToArray()
	if err != nil || len(parts) != 3 {
		return item{why: "its answer has another form"}
	}
	name, _ := parts[0].ToString()
	score, _ := parts[1].ToString()
	host, why := readHost(name, score, &parts[2])
	return item{name, host, why}
}

// readHost reads one host of the answer; why says what is wrong with it.
func readHost(name, score string, row *rueidis.RedisMessage) (h Host, why string) {
	if why, err := row.ToString(); err == nil {
		return Host{}, why
	}
	if !hostName.MatchString(name) {
		return Host{}, "its name is not a host's"
	}
	if row.IsNil() {
		ms, err := strconv.ParseFloat(score, 64)
		if err != nil || ms < 0 || ms > jsonval.MaxSafeInt {
			return Host{}, "its instant is not one"
		}
		return Host{Name: name, At: time.UnixMilli(int64(ms)), Stale: true}, ""
	}
	fields, err := row.AsStrSlice()
	if err != nil || len(fields) != 7 {
		return Host{}, "its row is not one"
	}
	return parseRow(name, fields)
}

// parseRow reads a row's fields in the order of the package comment.
func parseRow(name string, fields []string) (h Host, why string) {
	at, atOK := parseInt(fields[1], jsonval.MaxSafeInt)
	slots, slotsOK := parseInt(fields[2], jobsize.MaxHostSlots)
	used, usedOK := parseInt(fields[3], jobsize.MaxHostSlots)
	switch {
	case fields[0] != name:
		return Host{}, "its name is another's"
	case !atOK || at == 0:
		return Host{}, "its at is not an instant"
	case !slotsOK:
		return Host{}, "its slots are not a number of slots"
	case !usedOK:
		return Host{}, "its used is not a number of slots"
	case !versionName.MatchString(fields[4]):
		return Host{}, "its version is not one"
	}
	h = Host{Name: name, At: time.UnixMilli(at), Slots: int(slots), Used: int(used), Version: fields[4]}
	jobs, dropped, ok := livejobs.Parse(fields[5])
	if ok {
		h.Jobs = jobs
	}
	if h.More, h.MoreKnown = livejobs.ParseMore(fields[6]); h.MoreKnown {
		h.More += int64(dropped)
	}
	return h, ""
}

// parseInt reads a whole number from 0 to most.
func parseInt(s string, most int64) (int64, bool) {
	if s == "" || len(s) > 16 || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= most
}
