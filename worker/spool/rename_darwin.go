package spool

import "golang.org/x/sys/unix"

// renameNew renames a file and fails with fs.ErrExist where one of the new name
// is there.
func renameNew(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}
