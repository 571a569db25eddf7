package container

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
)

// checkStatic refuses a supervisor that is no static Linux program: an image
// need not have the libraries that another one loads.
func checkStatic(path string) error {
	fail := func(err error) error {
		return fmt.Errorf("check the supervisor %.80q: %w: %w", filepath.Base(path), ErrSpec, err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return fail(withoutPath(err))
	}
	defer f.Close()
	for _, program := range f.Progs {
		if program.Type == elf.PT_INTERP {
			return fail(errors.New("it is linked dynamically: build it with CGO_ENABLED=0"))
		}
	}
	return nil
}
