// Package supervisor is the half of a run that stands inside the container: the
// first process there, which starts the job's command, outlives it, and writes
// the run's exit line whatever became of the command.
//
// A static program becomes a supervisor by handing the end of its arguments to
// [Main] before it does anything else:
//
//	if len(os.Args) > 1 && os.Args[1] == "supervise" {
//		os.Exit(supervisor.Main(os.Args[2:]))
//	}
//
// With --key-stdin the first line of standard input is the key of the run (see
// package exit); what follows is the command's own input. The key is held by
// this process alone: the command is started through a second, fresh image of
// the same program, which never saw it, and this process can't be traced or
// dumped. The command inherits standard output and standard error; nothing is
// copied.
//
// Once the command has ended, everything that it left running is killed, the
// usage of the cgroup is read, and the line is written:
//
//	{"event":"exit","by":"supervisor","code":0,"resources":{…}}
//
// The supervisor then exits with that code: the command's own, 128 and the
// number of the signal that ended it, 127 or 126 for a command that could not
// be found or executed, and 125 when the supervisor itself failed. The reason
// oom-killed stands beside code 137 only when the command was ended by a SIGKILL
// that is not the supervisor's own and the kernel counted a memory kill in the
// cgroup.
//
// The line can be missing: a SIGKILL of the supervisor from outside its
// container, or by the kernel when even the supervisor's few pages are too many,
// leaves nobody to write it.
//
// Outside a PID namespace the supervisor makes itself the reaper of its
// descendants, and kills those alone. Systems other than Linux have a reduced
// supervisor: it kills the command's process group, so that a process which
// left that group survives; it can be traced by its own user; and it reports no
// usage.
package supervisor
