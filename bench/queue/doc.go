// Command queue measures the Redis Streams queue against asynq and BullMQ: jobs
// that do nothing, on one Redis server with append-only persistence (fsync every
// second), each with a lease of 30 s and no more claimed than there are slots.
//
// For each number of slots the systems take turns, several rounds. A round has
// two parts. Throughput: a backlog is worked off, from the first claim to the last
// settled job. Latency: jobs are submitted at a steady pace to a worker that
// waits, from the call of submit to the start of the job's function. The medians
// of the rounds and the ratios to the better peer are printed.
//
// The queue is measured alone, taking jobs as a worker does, and as the queue of a
// whole worker with a runtime that does nothing, which keeps no record on the disk.
//
// BullMQ runs under node, from the folder that -node names: run npm ci there. It is
// left out, and said so, without node and with -node none.
package main
