package record

import "syscall"

func mountFS(source, dir, fstype string, flags uintptr, data string) error {
	return syscall.Mount(source, dir, fstype, flags, data)
}
