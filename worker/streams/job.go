package streams

import (
	"encoding/json"
	"fmt"

	"github.com/edgehero/dispatch/worker"
)

// writeJob returns the stored form of a job: everything but its payload, which
// stays as it came, byte for byte.
func writeJob(job worker.Job) (body, data string, err error) {
	data = string(job.Data)
	job.Data = nil
	text, err := json.Marshal(job)
	return string(text), data, err
}

// readJob reads a stored job, which anybody who reaches the server may have
// written.
func readJob(id, body, data string) (worker.Job, error) {
	var job worker.Job
	if err := json.Unmarshal([]byte(body), &job); err != nil {
		return worker.Job{}, fmt.Errorf("read stored job %.64q: %w", id, err)
	}
	job.ID, job.Data = id, nil
	if data != "" {
		job.Data = json.RawMessage(data)
	}
	if err := job.Check(); err != nil {
		return worker.Job{}, fmt.Errorf("read a stored job: %w", err)
	}
	return job, nil
}
