// Package streams is a queue in Redis 6.2 or later, or Valkey: for many hosts,
// where the folder of package spool serves one.
//
// # What it promises
//
// A job is known from its Submit until it is settled, and its id is unique for
// that long. It is delivered at least once. Each delivery has a fencing token, the
// number of the job's claim and a nonce, and every change of a job's state is one
// script that checks it on the server's clock: a worker that lost its lease can't
// extend, settle, retry or defer, and changes nothing.
//
// # What it cannot promise
//
// A host that is cut off for longer than a lease may still run its job when
// another host begins it again; exactly one of the two settles it. A host that
// is cut off while it waits for a job may be given one within the next second,
// which then stands still for a lease. Redis copies to its replicas late: when a
// replica is promoted, submissions and settlements of the last moments may be
// gone. A job that came back that way is settled from its record, where the
// record can be seen, and else runs again. Use append-only persistence and the
// maxmemory policy noeviction; [Queue.Warnings] says when a server is set up
// otherwise. A job whose place in the queue is deleted all the same waits until
// it is submitted again.
//
// # Layout
//
// Every key begins with one prefix that ends in a hash tag, so that one script
// may touch all of them on a cluster. P is that prefix.
//
//	P job:ID          hash: what is known of a job
//	P ready           stream: jobs that any host may run, read by the group workers
//	P ready:HOST      stream: jobs that only this host may run
//	P delayed         sorted set: jobs by the instant (ms) they become due
//	P dead            stream: jobs that are not tried again, and why
//	P ended:ID        text: how a job ended, for a while
//	P runs:rec:ID     text: the job's record as other hosts may read it, for a while
//	P server          hash: which server answers, since when without a gap, and
//	                  whether it ever had the group of ready
//	P changed         text: since when it is this one, if there was another before
//
// The fields of a job's hash, of which one that has no value is missing:
//
//	body, data             the job as it was submitted; its payload, as it came
//	state                  waiting, delayed, running or dead
//	only_host              the only host that may run it
//	attempts, stalls       how many were counted
//	placed                 when (ms) it was last put into the queue
//	entry                  its entry in a ready stream: waiting or running
//	due                    when (ms) it becomes due: delayed
//	token, host            of the claim that holds it: running
//	claims                 how many there were
//	passed                 the hosts that passed it on
//	not_host, not_until    which host must not take it next, and until when (ms)
//	cancel                 requested or too-late
//	reason, at, dead_entry why and when (ms) it died, its entry in dead: dead
//	submit, requeue        nonces of those calls, by which a repeated one is known
//	settled                the same of what settled its last delivery
//
// A pending entry of the group is a job's lease: extending it makes its idle
// time 0, and XAUTOCLAIM gives it to another worker once that reaches the lease.
// An entry is acknowledged and deleted when its job moves on, so nothing has to
// be trimmed.
package streams
