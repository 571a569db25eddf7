//go:build !linux

package record

import "errors"

func mountFS(string, string, string, uintptr, string) error { return errors.ErrUnsupported }
