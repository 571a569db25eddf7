package exit

import (
	"strings"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// The patterns are walked by hand: they run on every line and every record, and
// a regular expression takes a multiple of the time.

const (
	maxActionLen     = 80
	maxToolCallIDLen = 256
	maxModelNameLen  = 128
	digestLen        = 64
)

// ValidAction reports whether s names an action: a word, or two joined by a
// colon, each of a lower-case letter and then lower-case letters, digits and
// hyphens, in all at most 80 characters.
func ValidAction(s string) bool {
	first, second, two := strings.Cut(s, ":")
	return len(s) <= maxActionLen && isActionWord(first) && (!two || isActionWord(second))
}

func isActionWord(s string) bool {
	return s != "" && isLower(s[0]) && consistsOf(s, func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' })
}

// ValidModelName reports whether s names a provider or a model: 1 to 128
// letters, digits and ._:/@+- of which the first is a letter or a digit.
func ValidModelName(s string) bool {
	return s != "" && len(s) <= maxModelNameLen && isAlnum(s[0]) &&
		consistsOf(s, func(c byte) bool { return isAlnum(c) || strings.IndexByte("._:/@+-", c) >= 0 })
}

// ValidDigest reports whether s is a SHA-256 digest: 64 lower-case hex
// characters.
func ValidDigest(s string) bool {
	return len(s) == digestLen && isLowerHex([]byte(s))
}

func validToolCallID(s string) bool {
	return s != "" && len(s) <= maxToolCallIDLen &&
		consistsOf(s, func(c byte) bool { return isAlnum(c) || strings.IndexByte("_.:|/-", c) >= 0 })
}

func validPiAi(s string) bool {
	return len(s) <= maxPiAiLen && consistsOf(s, func(c byte) bool { return isAlnum(c) || strings.IndexByte(".+-", c) >= 0 })
}

// digest returns the text when it is a digest, "" otherwise.
func digest(v jsonval.Value) Word {
	if text, _ := v.Text(); ValidDigest(text) {
		return Word(text)
	}
	return ""
}

func consistsOf(s string, ok func(c byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }
