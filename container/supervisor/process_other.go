//go:build !linux

package supervisor

import (
	"os"
	"syscall"

	"github.com/edgehero/dispatch/exit"
	"golang.org/x/sys/unix"
)

// protect does nothing: there is no way to refuse a trace by the same user that
// holds for a program without entitlements, and no reaper but the first process.
func protect() {}

func ownImage() (string, error) { return os.Executable() }

func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func volunteerForOOM() {}

func usage() *exit.Resources { return nil }

func dup2(from, to int) error { return unix.Dup2(from, to) }

// killOthers kills the command's process group. What has left the group is not
// found. The group's number stays taken for as long as it has a member.
func killOthers(cmd *command) { _ = syscall.Kill(-cmd.pid, syscall.SIGKILL) }
