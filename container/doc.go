// Package container runs one job in one container of its own size, and says how
// that ended from what the runtime knows of the container, never from what its
// client or the job's output claim.
//
// A [Spec] says what a job needs. [Docker] and [Podman] turn it into a command
// line of their clients by one builder; [Process] runs the same Spec on the host
// itself, without walls. Each looks an image up, runs a job to its end, and
// stops, lists and inspects by name. A [Result] tells a job that never started,
// for which nothing was spent, from one that ran; a run whose end is not known
// is Detached, and is never taken for one that did not happen.
//
// Everything a worker process makes outside of itself carries the id of its
// [Instance]. [Sweep] removes what a dead one left. Probe reads back what a host
// really enforces. [KeptRuns] holds directories of runs for a while.
//
// What this package promises depends on three things. The daemon must be of this
// host, or see the same files at the same paths: files of a run are mounted from
// here. The folder of the instances must be on a local file system: over NFS a
// lock may outlive its holder. And whoever may talk to the daemon can read a
// job's environment there.
//
// A job's stdout and stderr come by two ways, and one may overtake the other. The
// log has both as they came; the exit line is read from a tail that takes each
// in whole lines, so that neither splits the other's.
package container
