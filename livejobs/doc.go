// Package livejobs is the list of jobs that a host runs right now: how one is
// published, and how another host's is read. Both halves stand here, so that the
// writer can't publish a shape that the reader drops.
//
// The list, its fields and its parser are pure functions; the [Registry] is in
// memory. The subpackage redisrow carries the list through Redis or Valkey.
//
// # The format
//
// A row has two fields. jobs is a JSON array of at most 32 entries, the oldest
// first, each with the keys, in this order:
//
//	id  the job's id, [A-Za-z0-9._:-]{1,128}; any other id is published as
//	    sha256: and the first 16 hex digits of its SHA-256
//	p   the project's id, [a-z0-9][a-z0-9._-]{0,63}, or null
//	m   memory in MiB, left out when it is not known
//	c   CPUs in hundredths, left out when they are not known
//	at  when the job took its slot, epoch milliseconds
//	o   1 for an orphan, a job whose container's stop did not take; else left out
//
// jobsMore is how many more jobs there are that the list has no room for or can't
// name, 1 to 9 digits. The row is a hint that is as old as its last beat: what a
// job came to, its record alone says.
package livejobs
