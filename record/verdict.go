package record

import "time"

// A Why says why a record does not settle an attempt.
type Why string

// The answers of [Verdict].
const (
	Settles      Why = ""
	Absent       Why = "absent"
	Unreadable   Why = "unreadable" // an [UnparseableError], which has no Record to ask about
	IDMismatch   Why = "id-mismatch"
	OtherAttempt Why = "other-attempt"
	DidFail      Why = "failed"
	OlderThanJob Why = "older-than-job"
)

// A Question asks of a record whether it is about one attempt of one job.
type Question struct {
	JobID   string
	Attempt int       // 1 for the first
	Created time.Time // of the job; the zero time judges no age
}

// clockSkew is how far the clock of the host that ran a job may lag behind that
// of the one that created it.
const clockSkew = 5 * time.Minute

// Verdict says whether a record settles an attempt, so that it need not run
// again, and if not, why. It reads the record's core only.
func Verdict(r *Record, q Question) Why {
	switch {
	case r == nil:
		return Absent
	case r.JobID != q.JobID || r.JobID == "":
		return IDMismatch
	case r.Attempt == nil || *r.Attempt != int64(q.Attempt):
		return OtherAttempt
	case r.Outcome == "" || r.Outcome == Failed:
		return DidFail
	case older(r.StartedAt, q.Created):
		return OlderThanJob
	}
	return Settles
}

// OfThisJob reports whether a record is about this attempt of this job, whatever
// its outcome. Its age goes by its start, or by its end where it has no start.
func OfThisJob(r *Record, q Question) bool {
	switch Verdict(r, q) {
	case Absent, IDMismatch, OtherAttempt:
		return false
	}
	at := r.StartedAt
	if at == "" {
		at = r.EndedAt
	}
	return !older(at, q.Created)
}

// older reports whether a run began too long before its job was created to be
// that job's.
func older(at Instant, created time.Time) bool {
	if created.IsZero() {
		return false
	}
	t, ok := at.Time()
	return !ok || t.Before(created.Truncate(time.Millisecond).Add(-clockSkew))
}
