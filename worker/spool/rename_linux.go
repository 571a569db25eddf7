package spool

import "golang.org/x/sys/unix"

// renameNew renames a file and fails with fs.ErrExist where one of the new name
// is there.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
