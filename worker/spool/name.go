package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/worker"
)

// maxReason bounds an encoded reason, so that a name with both counters at their
// largest fits the 255 bytes of a file name, with a prefix.
const maxReason = 100

// noText stands for a field of a name that is empty.
const noText = "-"

// A name is what the name of a job's file says.
type name struct {
	at       int64 // nanoseconds since 1970, not negative
	attempts int   // 0..maxCount
	stalls   int   // 0..maxCount
	cancel   worker.CancelAnswer
	host     string // hostToken, "" when any host may run the job
	digest   string // digestOf its id
	reason   exit.Reason
}

// maxCount is the largest counter that a name holds; more is not counted.
const maxCount = 999_999_999

// String returns the file's name. Names of one folder sort by at.
func (n name) String() string {
	s := fmt.Sprintf("%019d.%d.%d.%s.%s.%s", n.at, n.attempts, n.stalls, orNone(string(n.cancel)), orNone(n.host), n.digest)
	if n.reason != "" {
		s += "." + escapeReason(n.reason)
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return noText
	}
	return s
}

// escapeReason returns a reason as a name holds it, cut where it is too long.
func escapeReason(r exit.Reason) string {
	s := url.QueryEscape(string(r))
	for len(s) > maxReason {
		r = r[:len(r)-1]
		s = url.QueryEscape(string(r))
	}
	return s
}

// parseName reads a file's name. Only what String makes is one.
func parseName(s string) (name, bool) {
	fields := strings.SplitN(s, ".", 7)
	if len(fields) < 6 {
		return name{}, false
	}
	at, err1 := strconv.ParseInt(fields[0], 10, 64)
	attempts, err2 := strconv.ParseUint(fields[1], 10, 31)
	stalls, err3 := strconv.ParseUint(fields[2], 10, 31)
	n := name{at: at, attempts: int(attempts), stalls: int(stalls), digest: fields[5]}
	var err4 error
	if len(fields) == 7 {
		var reason string
		reason, err4 = url.QueryUnescape(fields[6])
		n.reason = exit.Reason(reason)
	}
	if fields[3] != noText {
		n.cancel = worker.CancelAnswer(fields[3])
	}
	if fields[4] != noText {
		n.host = fields[4]
	}
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || n.at < 0 ||
		n.attempts > maxCount || n.stalls > maxCount || !isAnswer(n.cancel) ||
		!isHex(n.digest, sha256.Size*2) || n.host != "" && !isHex(n.host, hostDigits) ||
		n.String() != s {
		return name{}, false
	}
	return n, true
}

func isAnswer(a worker.CancelAnswer) bool {
	switch a {
	case "", worker.CancelRequested, worker.CancelStopped, worker.CancelTooLate, worker.CancelRemoved:
		return true
	}
	return false
}

// isHex reports whether s is n lower-case hexadecimal digits.
func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// raise counts one more.
func raise(count int) int { return min(count+1, maxCount) }

// digestOf returns what stands for an id in the names of files.
func digestOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

const hostDigits = 16

// hostToken returns what stands for the only host of a job in names, "" for "".
func hostToken(host string) string {
	if host == "" {
		return ""
	}
	return digestOf(host)[:hostDigits]
}
