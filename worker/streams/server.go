package streams

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// How long to wait before a server that is away is asked again.
const (
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
)

// answerLimit is how long the answer to a call is waited for, also when ctx ends
// meanwhile: a job whose claim nobody hears of stands still for a lease. The client
// answers a context with a limit sooner than one that only ends.
const answerLimit = 5 * time.Second

// ask repeats a call until the server has answered it or ctx ends. Every call
// can be repeated: the scripts know a call they have carried out before. again
// says that the answer to an earlier one may have been lost.
func (q *Queue) ask(ctx context.Context, call func(ctx context.Context, again bool) rueidis.RedisResult) (rueidis.RedisMessage, error) {
	pause := firstPause
	for again := false; ; again = true {
		if ctx.Err() != nil {
			return rueidis.RedisMessage{}, ctx.Err()
		}
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
		answer, err := call(limited, again).ToMessage()
		stop()
		if err == nil || !away(err) {
			if again {
				q.log.Info("queue_server_back")
			}
			return answer, err
		}
		if ctx.Err() != nil {
			return rueidis.RedisMessage{}, ctx.Err()
		}
		if !again {
			q.log.Warn("queue_server_away", "error", err)
		}
		sleep(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// awayReplies begin the errors of a server that can't be asked now.
var awayReplies = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNKILLABLE", "BUSY ", "NOREPLICAS",
}

// away reports whether an error says that the server can't be asked now, rather
// than that it, or a client that was closed, refused.
func away(err error) bool {
	if errors.Is(err, rueidis.ErrClosing) || rueidis.IsParseErr(err) || rueidis.IsRedisNil(err) {
		return false
	}
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return true
	}
	for _, prefix := range awayReplies {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// run carries a script out and returns its answer as text.
func (q *Queue) run(ctx context.Context, script *rueidis.Lua, keys, args []string) (string, error) {
	answer, err := q.ask(ctx, func(ctx context.Context, _ bool) rueidis.RedisResult {
		return script.Exec(ctx, q.config.Client, keys, args)
	})
	if err != nil {
		return "", err
	}
	return answer.ToString()
}

// hash reads a hash; a missing one is empty.
func (q *Queue) hash(ctx context.Context, key string) (map[string]string, error) {
	answer, err := q.ask(ctx, func(ctx context.Context, _ bool) rueidis.RedisResult {
		return q.config.Client.Do(ctx, q.config.Client.B().Hgetall().Key(key).Build())
	})
	if err != nil {
		return nil, err
	}
	return answer.AsStrMap()
}

// Warnings asks the server how it is set up and says what does not fit a queue.
// A managed service may forbid the question, which is no error.
func (q *Queue) Warnings(ctx context.Context) []string {
	get := func(setting string) string {
		client := q.config.Client
		answer, err := client.Do(ctx, client.B().ConfigGet().Parameter(setting).Build()).AsStrMap()
		if err != nil {
			return ""
		}
		return answer[setting]
	}
	var warnings []string
	if policy := get("maxmemory-policy"); policy != "" && policy != "noeviction" {
		warnings = append(warnings, "maxmemory-policy is "+policy+": jobs can be evicted; set noeviction")
	}
	if get("appendonly") == "no" {
		warnings = append(warnings, "appendonly is no: a restart of the server can lose jobs; set yes")
	}
	return warnings
}

// sleep waits for a time or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
