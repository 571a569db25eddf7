// Package spool is a queue in a folder: the embedded default of a worker, which
// needs no server. Several processes of one machine may submit to it and work
// off it at the same time, and each may be killed at any instant.
//
// The folder must be on a local file system that can rename without replacing
// and has hard links, and whose renames are atomic across a crash: ext4, xfs,
// btrfs, zfs, APFS. Over NFS a lock can outlive its holder, so that jobs would
// be stuck or run twice; [Open] refuses a file system without such renames.
// Nothing in the folder may be removed or renamed by hand while a process uses
// it, except below aside.
//
// # Layout
//
//	ids/DIGEST                 every job that is known, from submit to its end
//	ready/NAME                 jobs that may be claimed, in the order of their names
//	delayed/NAME               jobs that may be claimed from the instant in their name on
//	claims/INSTANCE/NAME       jobs that a worker process holds
//	claims/INSTANCE/new-DIGEST a job that is being submitted
//	claims/INSTANCE/end-NAME   a job that has ended and is being filed
//	dead/NAME                  jobs that are not tried again, oldest first
//	ended/NAME                 jobs that were settled or removed, without their data
//	instances/INSTANCE         a file that its process holds locked (flock) while it lives
//	sweep.lock                 held locked by whoever sweeps
//	aside/TIME.NAME            files that were found here and are none of the above
//
// DIGEST is the SHA-256 of the job's id in hexadecimal, INSTANCE 12 hexadecimal
// digits. NAME is
//
//	AT.ATTEMPTS.STALLS.CANCEL.HOST.DIGEST[.REASON]
//
// AT is an instant in nanoseconds since 1970, 19 digits: when a ready job was
// queued, a delayed one is due, a dead one died, an ended one ended. CANCEL is
// "-" when nobody asked for a cancel, else "requested", "stopped", "too-late" or
// "removed". HOST is "-" or the first 16 digits of the SHA-256 of the only host
// that may run the job. REASON, percent-encoded, is why a dead job is dead.
//
// A job's file is one line of JSON (the job and the length of its data) and then
// the data. It is written and synced once, under claims/INSTANCE, and does not
// change until the job has ended: the state of a job is nothing but the folder
// and the name of its file. The entry in ids is a hard link to that file, made
// exclusively, which is what keeps ids unique.
//
// # Transitions
//
// Each change of state is one rename that never replaces a file, and one sync of
// the folder it went to, so that there is one file of a job at any instant. Two
// of them take more than that one step, and stand in the instance's folder until
// they are through. Submit writes new-DIGEST, links it into ids, and renames it
// into ready or delayed. An end renames the claim to end-NAME, which decides it,
// then removes the link in ids, cuts the data off, and renames it into ended.
// A cancel of a running job renames the claim where it lies; its worker finds it
// under the new name.
//
// # Recovery
//
// Every process that waits for work sweeps once a second: for an instance whose
// lock can be had the kernel has said that the process is gone. Its claims
// become ready again with their stalls raised, its submissions are completed
// when they had their link and removed when not, its ends are completed, and its
// folder and its lock file are removed.
//
// A file that can't be a job's, wherever it lies, is moved into aside, and the
// log names it (spool_set_aside, with the folder, the name and why). That is all
// that happens to it, and the only thing an operator may want to look at.
//
// # Waiting
//
// A process that waits looks at the modification times of ready and delayed every
// 50 ms, two calls of stat however many jobs wait for a claim, and so sees
// another process's submit within that time; its own are seen at once. That is
// preferred over inotify, which other systems don't have, of which a user has few
// instances, and which would need the same look after an overflow.
//
// A folder is listed when every name of the last listing has been tried, so that
// a claim from a long queue costs one rename and its sync. [Spool.Status],
// [Spool.Cancel] and [Spool.Requeue] list every folder: their cost grows with the
// number of jobs.
package spool
