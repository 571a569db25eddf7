package streams

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/edgehero/dispatch/worker"
)

var _ worker.Queue = (*Queue)(nil)

const (
	// longestWait bounds one wait for a new entry: a job that another host put
	// off meanwhile is seen after that long.
	longestWait = time.Second
	// lastWord is how long the answer to a claim is waited for when nobody wants
	// it any more. Without it the job would stand still for a lease.
	lastWord = 2 * time.Second
)

// reasonUnreadable is why a job whose stored form can't be read is dead.
const reasonUnreadable = "worker-error"

// Next waits for a job that this host may run and claims it. It returns ctx's
// error when that ends.
func (q *Queue) Next(ctx context.Context) (worker.Delivery, error) {
	for {
		d, next, err := q.claim(ctx)
		switch {
		case err != nil:
			return nil, fmt.Errorf("claim a job: %w", err)
		case d == nil:
			q.wait(ctx, next)
			continue
		}
		if unreadable := d.read(); unreadable != nil {
			if err := q.setAside(ctx, d, unreadable); err != nil {
				return nil, fmt.Errorf("claim a job: %w", err)
			}
			continue
		}
		return d, nil
	}
}

// idle says what a claim found when there was no job.
type idle struct {
	due         time.Duration // until it is worth to ask again; -1: for a new entry
	ready       string        // the last entry of each stream
	readyOnHost string
}

// claim claims a job; without one the delivery is nil.
func (q *Queue) claim(ctx context.Context) (*delivery, idle, error) {
	// A claim that was sent is heard out, though ctx ends.
	hear, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWord, stop) })()

	nonce := rand.Text()
	look := q.timeToLook()
	answer, err := q.ask(ctx, func(again bool) rueidis.RedisResult {
		return q.sendClaim(hear, nonce, look, again)
	})
	if err != nil {
		return nil, idle{}, err
	}
	return q.claimed(answer)
}

// timeToLook reports whether lost leases are to be looked for: at the first
// claim, and then often enough that one is found soon after its end.
func (q *Queue) timeToLook() bool {
	now := int64(time.Since(q.started)) + 1
	last := q.lastLook.Load()
	return (last == 0 || now-last > int64(q.config.Lease/4)) && q.lastLook.CompareAndSwap(last, now)
}

// sendClaim carries the claim script out. A server that does not know it has
// been started anew, or is another one: then the script has to look what server
// that is.
func (q *Queue) sendClaim(ctx context.Context, nonce string, look, again bool) rueidis.RedisResult {
	client := q.config.Client
	keys := []string{q.keys.ready(), q.keys.readyOn(q.config.Host), q.keys.delayed(), q.keys.fence(), q.keys.server()}
	args := func(look bool) []string {
		return []string{q.keys.jobs(), q.keys.hosts(), group, q.consumer, q.config.Host, nonce,
			millis(q.config.Lease), flag(look), flag(again)}
	}
	answer := client.Do(ctx, client.B().Evalsha().Sha1(q.scripts.claimDigest).Numkeys(int64(len(keys))).
		Key(keys...).Arg(args(look || again)...).Build())
	if reply, ok := rueidis.IsRedisErr(answer.Error()); ok && reply.IsNoScript() {
		answer = client.Do(ctx, client.B().Eval().Script(q.scripts.claim).Numkeys(int64(len(keys))).
			Key(keys...).Arg(args(true)...).Build())
	}
	return answer
}

// claimed reads the answer of the claim script.
func (q *Queue) claimed(answer rueidis.RedisMessage) (*delivery, idle, error) {
	parts, err := answer.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, idle{}, errors.New("the claim script's answer is not a pair")
	}
	wrong, wrongErr := parts[0].AsStrSlice()
	fields, fieldsErr := parts[1].AsStrSlice()
	if err := errors.Join(wrongErr, fieldsErr); err != nil {
		return nil, idle{}, err
	}
	q.faults.say(wrong)
	switch len(fields) {
	case 10:
		return newDelivery(q, fields), idle{}, nil
	case 3:
		due, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			due = longestWait.Milliseconds()
		}
		due = min(due, longestWait.Milliseconds())
		return nil, idle{time.Duration(due) * time.Millisecond, fields[1], fields[2]}, nil
	}
	return nil, idle{}, fmt.Errorf("the claim script gave %d fields", len(fields))
}

// setAside puts a job whose stored form can't be read on the dead list, so that
// it neither loops nor vanishes.
func (q *Queue) setAside(ctx context.Context, d *delivery, why error) error {
	q.log.Error("queue_job_unreadable", "job", d.job.ID, "error", why)
	if err := d.Dead(ctx, reasonUnreadable, nil); !errors.Is(err, worker.ErrLeaseLost) {
		return err
	}
	return nil
}

// wait returns when a new entry may be there, without claiming anything.
func (q *Queue) wait(ctx context.Context, i idle) {
	block := min(longestWait, q.config.Lease/4)
	if i.due >= 0 {
		block = min(block, i.due)
	}
	if block < time.Millisecond {
		return // XREAD takes a block of 0 for ever
	}
	// A server may answer late; one that hangs is not waited for.
	limited, cancel := context.WithTimeout(ctx, 2*block+time.Second)
	defer cancel()
	err := q.config.Client.Do(limited, q.config.Client.B().Xread().Block(block.Milliseconds()).Streams().
		Key(q.keys.ready(), q.keys.readyOn(q.config.Host)).Id(i.ready, i.readyOnHost).Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		sleep(ctx, block) // the next claim says what is wrong
	}
}

// newDelivery takes the fields that the claim script gives of a job.
func newDelivery(q *Queue, f []string) *delivery {
	d := &delivery{
		queue: q, body: f[1], data: f[2], passed: f[5], token: f[6], stream: f[7], entry: f[8],
		settling: make(chan struct{}, 1),
	}
	d.job.ID = f[0]
	d.job.Attempts, _ = strconv.Atoi(f[3]) // the script gives numbers
	d.job.Stalls, _ = strconv.Atoi(f[4])
	d.job.MayHaveRun = f[9] == "1"
	return d
}

// read reads the job's stored form. After an error the delivery can still be
// settled.
func (d *delivery) read() error {
	job, err := readJob(d.job.ID, d.body, d.data)
	if err != nil {
		return err
	}
	job.Attempts, job.Stalls, job.MayHaveRun = d.job.Attempts, d.job.Stalls, d.job.MayHaveRun
	if d.passed != "" {
		if err := json.Unmarshal([]byte(d.passed), &job.Passed); err != nil {
			return fmt.Errorf("read the hosts that passed job %.64q on: %w", job.ID, err)
		}
	}
	d.job, d.body, d.data = job, "", ""
	return nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
