// Package dispatch is the map of this module: it takes jobs off a queue and
// runs each in a container of its own size, for control planes that run
// untrusted work, first of all AI coding agents. It holds no code; a control
// plane imports the packages below.
//
// A job takes this path. It asks for a size, and [jobsize] says what that
// becomes on a host. The worker runs it in a container that was given a key on
// its standard input and on no other way. The container's supervisor signs the
// last line of output with that key; [exit] verifies the line and rebuilds every
// field of it. The worker classifies the run by the container's real exit code,
// which no line can change, and writes one durable [record]. What runs now is
// published as [livejobs].
//
// # Ground floor: pure, standard library only, no I/O, no clock
//
//   - [github.com/edgehero/dispatch/jobsize] is how much of a host a job gets:
//     sizes, CPU shares and weights, the ceiling all jobs share, host budgets.
//   - [github.com/edgehero/dispatch/exit] is what a container said as it ended:
//     the exit line, its signature, and the tail of output it is picked from.
//
// # First floor: files and kernel
//
//   - [github.com/edgehero/dispatch/record] is what is kept of a run: one JSON
//     file a job, written so that a crash leaves the old one or the new one.
//   - [github.com/edgehero/dispatch/cgroup] is what the kernel says of a job and
//     how a size is applied to a process, on cgroup v2.
//   - [github.com/edgehero/dispatch/livejobs] is the list of jobs a host runs
//     right now; its subpackage redisrow publishes it to Redis or Valkey and
//     reads the whole fleet's.
//
// # Second floor: one job, one container
//
//   - [github.com/edgehero/dispatch/container] turns a Spec into a run under
//     Docker, Podman or no container at all, and says how it really ended; its
//     subpackage supervisor is the half that runs inside.
//
// # Third floor: from a queue to a record
//
//   - [github.com/edgehero/dispatch/worker] composes the others: pickup, budget,
//     run, classify, record, settle; its subpackages spool and streams are the
//     queues, a folder for one machine and Redis Streams for many.
//
// Who imports whom, and all below them, from the top down:
//
//	worker/spool, worker/streams -> worker
//	worker -> container, record, livejobs
//	livejobs/redisrow -> livejobs
//	container -> cgroup
//	container/supervisor -> cgroup
//	record, cgroup -> exit, jobsize
//	livejobs -> jobsize
//
// The programs under examples are thin: worker is the reference worker an
// operator runs, supervisor the entrypoint of a job image, embed a small
// control plane of its own.
package dispatch
