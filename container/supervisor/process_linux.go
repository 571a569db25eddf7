package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"github.com/edgehero/dispatch/cgroup"
	"github.com/edgehero/dispatch/exit"
	"golang.org/x/sys/unix"
)

// protect shuts other processes of this user out of this process's memory, and
// makes it the parent of every descendant whose own parent ends.
func protect() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// ownImage names this program's file by what runs, whatever has become of its
// path since.
func ownImage() (string, error) { return "/proc/self/exe", nil }

// commandAttr gives the command a process group of its own, and lets it die with
// the supervisor.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// volunteerForOOM makes the kernel end this process, and what it starts, before
// the supervisor when memory is short. Raising one's own score needs no right.
func volunteerForOOM() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// usage is what the kernel measured of this process's cgroup.
func usage() *exit.Resources { return cgroup.Self().Usage() }

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// killOthers kills every process that the command left, as far as it is seen: in
// a container all the others of the PID namespace, else this process's
// descendants and nobody else's.
func killOthers(*command) {
	if os.Getpid() == 1 {
		// One step for the kernel: nothing can fork its way around it.
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for _, pid := range freezeDescendants() {
		signalDescendant(pid, syscall.SIGKILL)
	}
}

// freezeDescendants stops all descendants and returns them. What is stopped
// forks no more and frees no room for others under a limit, so that a pass that
// finds nothing new is soon reached; a caller that repeats itself anyway takes
// what comes later.
func freezeDescendants() []int {
	const passes = 20
	seen := map[int]bool{}
	var all []int
	for range passes {
		before := len(all)
		for _, pid := range descendants(os.Getpid()) {
			if !seen[pid] && signalDescendant(pid, syscall.SIGSTOP) {
				seen[pid] = true
				all = append(all, pid)
			}
		}
		if len(all) == before {
			break
		}
	}
	return all
}

// signalDescendant signals pid if it is a descendant of this process still. The
// descriptor holds on to the process: should the number have become another
// process's, then either that one is no descendant, or the signal goes nowhere.
func signalDescendant(pid int, sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ENOSYS { // Linux before 5.3
		return isDescendant(pid) && syscall.Kill(pid, sig) == nil
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return isDescendant(pid) && unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// isDescendant follows the parents of pid up to this process.
func isDescendant(pid int) bool {
	self := os.Getpid()
	for pid > 1 && pid != self {
		parent, ok := parentOf(pid)
		if !ok {
			return false
		}
		pid = parent
	}
	return pid == self
}

// descendants lists the processes below root, parents first.
func descendants(root int) []int {
	children := map[int][]int{}
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	all := children[root]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// parentOf reads the parent of pid; ok is false when there is no such process.
// One that reads as a zombie counts: its first thread alone may have ended.
func parentOf(pid int) (parent int, ok bool) {
	// 4242 (a name (with) spaces) S 4200 4242 …
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
