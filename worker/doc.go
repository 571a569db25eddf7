// Package worker takes jobs off a queue and brings each to a durable record: it
// picks a job up, gives it a share of the host, runs it in a container,
// classifies how it ended by the container's real exit code, writes the record,
// tells whom it concerns, and settles the job with its queue.
//
// A control plane gives a [Config] a queue, a runtime and a record store, and
// the [Hooks] it likes; [New] checks it and [Worker.Run] works until its context
// ends. [Memory] is the queue for tests and for embedding; the subpackages spool
// and streams are durable ones.
//
// A queue delivers at least once. The worker keeps a finished job from running
// again by its record, which is on disk before the queue hears that the job is
// done: a job that comes back after a crash is settled from the record, wherever
// that can be seen. What it cannot promise: a host cut off from its queue for
// longer than a lease may see its job run a second time elsewhere; exactly one of
// the two settles.
//
// # A job's life
//
// What an earlier pickup left running is stopped. A delivery that stalled is
// looked up among the records. Then come pause, size, image, prepare, the wait
// for a share of the host, and the run; then classify, record, notify, settle,
// in this order; at last everything that was taken is given back, once, on every
// path. A container whose stop did not take keeps its share until the runtime
// says that it is gone.
//
// # Log events
//
// worker_started, no_isolation, worker_draining, worker_stopped; job_picked,
// job_paused, job_handed_back, job_passed_on, job_never_fits, job_refused,
// image_missing, job_started, job_ended, job_retried, job_dead,
// job_settled_from_record, lease_lost, oom_report_below_limit, orphan,
// orphan_stays, orphan_gone; and for faults runtime_away, queue_failed,
// leftovers_failed, record_read_failed, record_unparseable, record_write_failed,
// describe_failed, pause_failed, image_failed, prepare_failed, cleanup_failed,
// spec_refused, run_failed, run_log_failed, artifacts_failed, notify_failed,
// observe_failed, facts_failed, hosts_failed, lease_extend_failed, size_refused,
// job_id_refused, hook_hangs, hook_panicked.
package worker
