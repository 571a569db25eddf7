package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
	"github.com/redis/rueidis"
)

var _ worker.Mirror = (*Queue)(nil)

const (
	// mirrorLimit bounds how long a mirror is asked.
	mirrorLimit = 2 * time.Second
	// maxRecordLen is far above what a record has, and bounds what a planted value
	// makes a reader take, in bytes.
	maxRecordLen = 4 << 20
)

// Record returns the record that settled or ended a job's last attempt on any
// host, nil when there is none that can be read. An error says that the server
// did not answer within 2 s.
func (q *Queue) Record(ctx context.Context, jobID string) (*record.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	client := q.config.Client
	text, err := client.Do(ctx, client.B().Getrange().Key(q.keys.record(jobID)).Start(0).End(maxRecordLen).Build()).ToString()
	if _, refused := rueidis.IsRedisErr(err); refused && !away(err) {
		q.log.Error("mirrored_record_unreadable", "job", jobID, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the mirrored record of job %.64q: %w", jobID, err)
	}
	if text == "" {
		return nil, nil
	}
	if len(text) > maxRecordLen {
		q.log.Error("mirrored_record_unreadable", "job", jobID, "error", "it is larger than 4 MiB")
		return nil, nil
	}
	rec, err := record.Parse([]byte(text))
	if err != nil {
		q.log.Error("mirrored_record_unreadable", "job", jobID, "error", err)
		return nil, nil
	}
	return &rec, nil
}
