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

// longestWait bounds one wait for a new entry: a job that another host put off
// meanwhile is seen after that long.
const longestWait = time.Second

// reasonUnreadable is why a job whose stored form can't be read is dead.
const reasonUnreadable = "worker-error"

// Next waits for a job that this host may run and claims it. It returns ctx's
// error when that ends, up to a second later where it waits, unless it was given a
// job meanwhile.
func (q *Queue) Next(ctx context.Context) (worker.Delivery, error) {
	var found idle
	for {
		d, now, err := q.claim(ctx, found)
		switch {
		case err != nil:
			return nil, fmt.Errorf("claim a job: %w", err)
		case d == nil:
			found = now
			continue
		}
		found = idle{}
		readable, err := q.read(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("claim a job: %w", err)
		}
		if readable {
			return d, nil
		}
	}
}

// idle says what a claim found when there was no job. The next claim waits until
// there may be one; after the zero idle it does not.
type idle struct {
	wait        time.Duration // at most so long
	ready       string        // the last entry of each stream
	readyOnHost string
}

// claim claims a job, once there may be one; without one the delivery is nil.
func (q *Queue) claim(ctx context.Context, found idle) (*delivery, idle, error) {
	answer, err := q.askClaim(ctx, q.scripts.claim, found, nil, nil)
	if err != nil {
		return nil, idle{}, err
	}
	wrong, fields, err := pair(answer)
	if err != nil {
		return nil, idle{}, err
	}
	q.faults.say(wrong)
	switch len(fields) {
	case deliveryFields:
		return newDelivery(q, fields), idle{}, nil
	case 3:
		wait := min(longestWait, q.config.Lease/4)
		if due, err := strconv.ParseInt(fields[0], 10, 64); err == nil && due >= 0 {
			wait = min(wait, time.Duration(due)*time.Millisecond)
		}
		return nil, idle{wait, fields[1], fields[2]}, nil
	}
	return nil, idle{}, fmt.Errorf("the claim script gave %d fields", len(fields))
}

// askClaim carries out a script that claims, after the wait that is found to be
// worth it. keys and args are what it takes beside those of a claim.
func (q *Queue) askClaim(ctx context.Context, script claimScript, found idle, keys, args []string) (rueidis.RedisMessage, error) {
	keys = append([]string{q.keys.ready(), q.keys.readyOn(q.config.Host), q.keys.delayed(), q.keys.server(), q.keys.changed()}, keys...)
	nonce := rand.Text()
	look := q.timeToLook()
	return q.ask(ctx, func(ctx context.Context, again bool) rueidis.RedisResult {
		claim := func(look bool) []string {
			return append([]string{q.keys.jobs(), q.keys.hosts(), group, q.consumer, q.config.Host, nonce,
				millis(q.config.Lease), flag(look), flag(again)}, args...)
		}
		if again || found.wait < time.Millisecond { // XREAD takes a block of 0 for ever
			return script.exec(ctx, q.config.Client, keys, look || again, claim)
		}
		return q.waitAndClaim(ctx, script, found, keys, look, claim)
	})
}

// waitAndClaim sends the claim behind the wait, so that the server carries it out
// as soon as there is an entry, without a round trip in between.
func (q *Queue) waitAndClaim(ctx context.Context, script claimScript, found idle, keys []string, look bool, claim func(look bool) []string) rueidis.RedisResult {
	client := q.config.Client
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), found.wait+answerLimit)
	defer stop()
	answers := client.DoMulti(limited,
		client.B().Xread().Block(found.wait.Milliseconds()).Streams().
			Key(q.keys.ready(), q.keys.readyOn(q.config.Host)).Id(found.ready, found.readyOnHost).Build(),
		script.command(client, keys, claim(look)))
	if reply, ok := rueidis.IsRedisErr(answers[0].Error()); ok && !reply.IsNil() {
		sleep(ctx, found.wait) // the claim says what is wrong
	}
	if script.unknown(answers[1]) {
		return script.exec(limited, client, keys, look, claim)
	}
	return answers[1]
}

// pair reads the answer of a script that claims: what it found wrong, and what it
// claimed.
func pair(answer rueidis.RedisMessage) (wrong, fields []string, err error) {
	parts, err := answer.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, nil, errors.New("the claim script's answer is not a pair")
	}
	wrong, wrongErr := parts[0].AsStrSlice()
	fields, fieldsErr := parts[1].AsStrSlice()
	return wrong, fields, errors.Join(wrongErr, fieldsErr)
}

// timeToLook reports whether lost leases are to be looked for: at the first
// claim, and then often enough that one is found soon after its end.
func (q *Queue) timeToLook() bool {
	now := int64(time.Since(q.started)) + 1
	last := q.lastLook.Load()
	return (last == 0 || now-last > int64(q.config.Lease/4)) && q.lastLook.CompareAndSwap(last, now)
}

// read reads a job's stored form. A job whose form can't be read is put on the
// dead list, so that it neither loops nor vanishes.
func (q *Queue) read(ctx context.Context, d *delivery) (readable bool, err error) {
	unreadable := d.read()
	if unreadable == nil {
		return true, nil
	}
	q.log.Error("queue_job_unreadable", "job", d.job.ID, "error", unreadable)
	if err := d.Dead(ctx, reasonUnreadable, nil); !errors.Is(err, worker.ErrLeaseLost) {
		return false, err
	}
	return false, nil
}

// deliveryFields is how many fields the claim script gives of a job.
const deliveryFields = 10

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
