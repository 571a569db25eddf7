package container

import (
	"fmt"
	"path"
	"strings"
)

func (m Mount) check(d Dialect) error {
	if fault := pathFault(m.Source); fault != "" {
		return fmt.Errorf("mount source %.80q %s", m.Source, fault)
	}
	if fault := pathFault(m.Target); fault != "" {
		return fmt.Errorf("mount target %.80q %s", m.Target, fault)
	}
	if path.Clean(m.Target) == "/" {
		return fmt.Errorf("mount target %.80q would hide the whole image", m.Target)
	}
	switch {
	case m.Relabel && !m.Writable:
		return fmt.Errorf("mount source %.80q is to be relabelled and is not the job's to write", m.Source)
	case m.Relabel && !d.Podman && strings.Contains(m.Source+m.Target, ":"):
		return fmt.Errorf("mount of %.80q is to be relabelled and holds a colon, which Docker can't write", m.Source)
	}
	return nil
}

// flag returns the runtime's flag for the mount.
func (m Mount) flag(d Dialect) string {
	source, target := path.Clean(m.Source), path.Clean(m.Target)
	if m.Relabel && !d.Podman {
		// Docker's --mount has no way to say it.
		return fmt.Sprintf("--volume=%s:%s:Z", source, target)
	}
	flag := fmt.Sprintf("--mount=type=bind,source=%s,target=%s", source, target)
	if !m.Writable {
		flag += ",readonly"
	}
	if m.Relabel {
		flag += ",relabel=private"
	}
	return flag
}
