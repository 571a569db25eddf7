// Package exit reads and signs the exit line: the one line of JSON by which a
// job's container says how it ended.
//
// A runner inside the container writes JSON log lines to standard output and an
// exit line as its last. The worker keeps a bounded [Tail] of the output, and a
// [Parser] picks the decisive line from it, checks its signature when the
// attempt had a [Key], and rebuilds every field into a [Line]. Nothing is passed
// through as text but loaded, which is handed on unread. Bad text is never an
// error and never a panic: no decisive line is a normal answer.
//
// A line, signed or not, is a claim. The key proves that a holder of the key
// wrote it; a workload that can read the runner's memory holds the key too. What
// a run is judged by is the container's real exit code. Without a key any
// program in the container can write the line: see [Line.Trusted].
//
// # The line
//
// An exit line is one JSON object (RFC 8259) on one line whose member event is
// the string "exit". Keys are compared byte for byte. Of a repeated key, at every
// depth, the last member counts, whole; null means absent. Invalid UTF-8 in a
// string reads as U+FFFD. Text nested deeper than 10 000 levels is no JSON. A
// safe integer is a whole number of magnitude at most 2^53 - 1, however written:
// 1, 1.0 and 10e-1 are one number.
//
// The tail is split at newlines and read from its end. Space, tab and CR around a
// line are cut off, and empty lines passed over. A line is read as JSON, whole
// or, when that fails, from its last anchor, the 15 bytes
//
//	{"event":"exit"
//
// because another program's unfinished output may stand before it. A line that
// is cut, or that goes on after the object, says nothing; it is never repaired.
// The last exit line decides. Only when it has by: "supervisor", the mark of the
// supervisor around the runner, and a line before it is an exit line without
// that mark, the nearest such line decides: the runner had finished and was
// killed afterwards.
//
// # Its fields
//
// A field that is not exactly as said is absent, and the line stands. Unknown
// members are passed over.
//
//	code, turns        a safe integer
//	reason             with code 2: a policy reason of the Vocabulary;
//	                   with code 0: awaiting-input or awaiting-approval
//	why                with code 2 and reason cost-cap: unboundable, external,
//	                   over-cap or final-payload
//	tokens             {input, output, cacheRead, cacheWrite, cacheWrite1h,
//	                   reasoning, total, cost}, each a finite number >= 0 or left
//	                   out; absent without a valid total
//	usage              {v, piAi, truncated, models}: v a safe integer >= 1, piAi
//	                   at most 64 of [A-Za-z0-9.+-] or absent, truncated a boolean
//	                   or absent, models at most 64 of {provider, model, calls,
//	                   input, output, cacheRead, cacheWrite, cacheWrite1h,
//	                   reasoning, total, cost, unpriced, providerBilled}: names
//	                   ^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$, counters finite
//	                   numbers >= 0, absent is 0; one fault and usage is absent
//	session            {resumed, reason}: resumed a boolean, reason a session
//	                   reason of the Vocabulary or absent
//	context            {tokens, window}: safe integers, >= 0 and > 0
//	resources          {memPeak, swapPeak, oomKills, memSomeUsec, memFullUsec,
//	                   cpuUsec, throttledUsec, throttled, pidsPeak}, each a safe
//	                   integer >= 0 or absent; one fault, or no value at all, and
//	                   resources is absent
//	approval           with code 0 and reason awaiting-approval: {action,
//	                   toolCallId}: action at most 80 characters of
//	                   ^[a-z][a-z0-9-]*(:[a-z][a-z0-9-]*)?$,
//	                   toolCallId ^[A-Za-z0-9_.:|/-]{1,256}$
//	steer              {delivered, pending, deliveredIds}: safe integers >= 0 or
//	                   absent; 1 to 16 ids of 32 lower hex, then made distinct, or
//	                   the list is absent; with nothing left steer is absent
//	recovery           {orphans, replayed, interrupted, notStarted}: safe
//	                   integers >= 0 or absent; with nothing left it is absent
//	canaryLoad         loaded or failed
//	by                 supervisor
//
// May be acted on from a verified line only:
//
//	modelRoles         {refusals}: at most 8 of {agentHash, reason}: 64 lower hex;
//	                   unknown-role, model-not-allowed, unknown-agent,
//	                   invalid-arguments or aborted; one fault and it is absent
//	providerFailure    with code 1: {kind, status}: rate-limited, overloaded,
//	                   auth, quota, network or server; a safe integer 100..599 or
//	                   absent
//	replaySafe,
//	toolsStarted       a boolean
//	answerDraftDigest  with code 0: 64 lower hex
//	questionRefDigest  with code 0 and reason awaiting-input: 64 lower hex
//	loaded             any JSON; loadedCut: true says that it was left out
//
// A line with by: "supervisor", code 137, reason "oom-killed" and oomKills above
// 0 in its resources reports a kill for memory.
//
// # The signature
//
// A key is 64 lower-case hex characters (32 random bytes), fresh for each
// attempt, and travels on the container's standard input as one line. An
// unsigned line begins with the anchor, holds it once and ends in }. With
//
//	mac = HMAC-SHA256(the 64 characters, the bytes of the unsigned line)
//
// the signed line is the unsigned one with its final } replaced by
// ,"auth":"<mac in lower hex>"}. It has no other auth member at its top level and
// is at most 64 KiB.
//
// To verify a line, trim it; it must end in ,"auth":"<64 lower hex>"}. The
// candidate begins at the last anchor; with its signature replaced by } it is
// what the MAC covers, byte for byte. Where a key was issued, lines that do not
// verify are not there at all, and of those that do, the unsigned bytes alone
// are read. The key signs exit lines only; another use derives its own key.
//
// # Compatibility
//
// The meaning, unit and type of a field never change, nor do the pick and the
// signature: a runner built against one version of this package is read by every
// other. New fields and new words in a closed set may come; a reader that does
// not know one reads it as absent.
package exit
