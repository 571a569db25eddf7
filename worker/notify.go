package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edgehero/dispatch/exit"
)

const (
	notifyTries = 3
	notifyPause = time.Second
)

// A Notification says that a job ended without success. There is one for each
// such job, and none while another attempt may still pass.
type Notification struct {
	// ID is <job>:<attempt>. A notification that comes again has the same one.
	ID      string
	Job     string
	Attempt int
	Class   Class // policy or infra
	Reason  exit.Reason
	// Text says it in a sentence that may be shown to an outsider: it names no
	// size, no project, no host, no path, and not the job.
	Text string
}

// texts say why a job ended, for an outsider. A reason that is not here is a
// token of the runner's, which is safe to show.
var texts = map[exit.Reason]string{
	reasonCancel:        "The job was cancelled.",
	reasonTimeout:       "The job was stopped at its time limit.",
	reasonAbort:         "The job was stopped because its worker was stopping.",
	reasonOOM:           "The job was stopped because it needed more memory than it was given.",
	reasonRunnerPolicy:  "The job was refused or stopped by its runner.",
	reasonImageMissing:  "The job was refused: the image that it runs in is not available.",
	reasonPrepare:       "The job was refused before it started.",
	reasonExceedsHost:   "The job was refused: it asks for more than can be given.",
	reasonExceedsShare:  "The job was refused: it asks for more than its project may have.",
	reasonStalled:       "The job failed: its worker vanished every time it was tried.",
	reasonAttemptsSpent: "The job failed: it has no attempt left.",
	reasonNeverStarted:  "The job failed: it could not be started.",
	reasonInfraExit:     "The job failed: what it depends on did not work.",
	reasonDetached:      "The job failed: the connection to it was lost.",
	reasonUnknownExit:   "The job failed: it ended in an unexpected way.",
	reasonWorkerError:   "The job failed: its worker could not run it.",
}

// notificationText returns the sentence for a reason.
func notificationText(class Class, reason exit.Reason) string {
	if text, ok := texts[reason]; ok {
		return text
	}
	if class == Policy {
		return fmt.Sprintf("The job was refused or stopped: %s.", reason)
	}
	return fmt.Sprintf("The job failed: %s.", reason)
}

// notify tells of a job that ended without success. A hook that goes on failing
// is logged: a job is not held back for it.
func (p *pickup) notify(class Class, reason exit.Reason) {
	hook := p.w.config.Hooks.Notify
	if hook == nil {
		return
	}
	n := Notification{
		ID:      fmt.Sprintf("%s:%d", p.job.ID, p.attempt),
		Job:     p.job.ID,
		Attempt: p.attempt,
		Class:   class,
		Reason:  reason,
		Text:    notificationText(class, reason),
	}
	for try := 1; ; try++ {
		_, err := call(p.settling, &p.w.hooks, "Notify", p.w.config.HookLimit, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, hook(ctx, n)
		}, nil)
		if err == nil {
			return
		}
		p.log.Error("notify_failed", "try", try, "error", err)
		if try == notifyTries || errors.Is(err, errHookHangs) || !sleep(p.settling, notifyPause) {
			return
		}
	}
}
