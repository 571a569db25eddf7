// Package redisrow tells a fleet what each of its hosts runs, through Redis 6.2
// or later, or Valkey: a [Publisher] writes its host's row again and again, and
// [Fleet] reads all of them.
//
// # What it promises
//
// A beat is one round trip of one script, reading a fleet is one as well. Ages
// are judged on the server's clock alone, so that no host's clock counts. A
// publisher never holds a job up: a server that is away costs it a line in the
// log when that begins and one when it ends. A row that is no row, whoever wrote
// it, is named and left out.
//
// # What it cannot promise
//
// A row is a hint, as old as its last beat. A host that is not seen may be cut
// off and at work: only a lease of the queue decides who may run a job, and only
// a record says what it came to. A server that forgets (a replica promoted, a
// restart without persistence) is filled again by the next beats. Two workers of
// one name are told apart as long as the server remembers the first.
//
// # Layout
//
// Every key begins with one prefix that ends in a hash tag, so that one script
// may touch all of them on a cluster. P is that prefix, NAME a host's name,
// [a-zA-Z0-9][a-zA-Z0-9._-]{0,63}.
//
//	P host:NAME   hash, the host's row; it expires after three beats
//	P owner:NAME  text: which process has the name; it expires with the row
//	P hosts       sorted set: names by the instant (ms) of their last beat
//
// A row's fields are
//
//	name      the host's name
//	at        the instant of the beat, epoch milliseconds of the server's clock
//	slots     how many jobs the host runs at a time
//	used      how many of those slots are taken
//	version   the worker's version, a name such as v1.4.0
//	jobs      what runs, see package livejobs
//	jobsMore  how many more run
//
// They hold names, integers and digests only.
package redisrow
