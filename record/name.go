package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	maxIDLen   = 1024 // bytes of a job id
	maxNameLen = 200  // bytes of a file name without its extension
	cutNameLen = 187  // what is left of a longer one beside "-" and the digest
	digestLen  = 12   // hex characters
	jsonExt    = ".json"
	logExt     = ".log"
)

// FileName returns the name, without an extension, of the files kept for a job:
// its id with every character outside A-Z a-z 0-9 . _ - replaced by one _. A
// name of more than 200 bytes is cut and ends in a digest of the id. Two ids can
// share a name: [Store] keeps their records apart. It is an error when the id is
// empty, a name that stands for a folder, or longer than 1024 bytes.
func FileName(jobID string) (string, error) {
	name, err := plainName(jobID)
	if err != nil {
		return "", err
	}
	if len(name) > maxNameLen {
		return hashedName(name, jobID), nil
	}
	return name, nil
}

func plainName(jobID string) (string, error) {
	if len(jobID) > maxIDLen {
		return "", fmt.Errorf("name the files of a job: its id %q... has %d bytes, at most %d are allowed", jobID[:64], len(jobID), maxIDLen)
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && isNameByte(byte(r)) {
			return r
		}
		return '_'
	}, jobID)
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("name the files of a job: its id %q is no file name, choose another id", jobID)
	}
	return name, nil
}

// hashedName is the form of a name that no other id shares.
func hashedName(name, jobID string) string {
	sum := sha256.Sum256([]byte(jobID))
	return name[:min(len(name), cutNameLen)] + "-" + hex.EncodeToString(sum[:])[:digestLen]
}

// names returns the two names that a job's record can have, the usual one
// first.
func names(jobID string) (usual, hashed string, err error) {
	name, err := plainName(jobID)
	if err != nil {
		return "", "", err
	}
	hashed = hashedName(name, jobID)
	if len(name) > maxNameLen {
		return hashed, hashed, nil
	}
	return name, hashed, nil
}
