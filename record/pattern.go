package record

import (
	"slices"
	"strings"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/internal/jsonval"
)

// The patterns are walked by hand: a report reads every record there is, and a
// regular expression takes a multiple of the time.

func isLower(c byte) bool    { return 'a' <= c && c <= 'z' }
func isAlnum(c byte) bool    { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }
func isNameByte(c byte) bool { return isAlnum(c) || c == '.' || c == '_' || c == '-' }
func isLowerName(c byte) bool {
	return isLower(c) || isDigit(c) || c == '.' || c == '_' || c == '-'
}

// matches reports whether s has 1 to limit bytes, of which first allows the
// first and rest the others.
func matches(s string, limit int, first, rest func(byte) bool) bool {
	if s == "" || len(s) > limit || !first(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !rest(s[i]) {
			return false
		}
	}
	return true
}

func isToken(s string) bool {
	return matches(s, 64, isLower, func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' })
}

func isVenue(s string) bool { return len(s) <= 32 && isToken(s) }

func isFlow(s string) bool { return matches(s, 128, isNameByte, isNameByte) }

func isHost(s string) bool { return matches(s, 64, isAlnum, isNameByte) }

func isProject(s string) bool {
	return matches(s, 64, func(c byte) bool { return isLower(c) || isDigit(c) }, isLowerName)
}

func isRole(s string) bool {
	return matches(s, 32, isLower, func(c byte) bool { return isLower(c) || isDigit(c) || c == '_' || c == '-' })
}

func isCanaryRole(s string) bool { return s != "inherit" && isRole(s) }

func isIDByte(c byte) bool { return isNameByte(c) || c == ':' }

func isSourceID(s string) bool { return matches(s, 200, isIDByte, isIDByte) }

func isRecoveryID(s string) bool { return matches(s, 200, isAlnum, isIDByte) }

func isVariable(s string) bool {
	letter := func(c byte) bool { return c == '_' || isAlnum(c) && !isDigit(c) }
	return matches(s, maxIDLen, letter, func(c byte) bool { return c == '_' || isAlnum(c) })
}

// isCandidate reports whether s is provider/model.
func isCandidate(s string) bool {
	provider, model, ok := strings.Cut(s, "/")
	return ok && exit.ValidModelName(provider) && exit.ValidModelName(model)
}

// isPackageName reports whether s is the name of an npm package, @scope/name or
// name.
func isPackageName(s string) bool {
	if len(s) > 214 {
		return false
	}
	name := s
	if scope, rest, ok := strings.Cut(s, "/"); ok {
		if !strings.HasPrefix(scope, "@") || !isPackagePart(scope[1:]) {
			return false
		}
		name = rest
	}
	return isPackagePart(name)
}

func isPackagePart(s string) bool {
	start := func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' || c == '~' }
	return matches(s, 214, start, func(c byte) bool { return isLowerName(c) || c == '~' })
}

// isExactVersion reports whether s is one version, x.y.z with an optional
// pre-release and build, and no range.
func isExactVersion(s string) bool {
	if len(s) > 128 {
		return false
	}
	s, build, hasBuild := strings.Cut(s, "+")
	core, pre, hasPre := strings.Cut(s, "-")
	numbers := strings.Split(core, ".")
	if len(numbers) != 3 || hasBuild && !areIdentifiers(build) || hasPre && !areIdentifiers(pre) {
		return false
	}
	for _, n := range numbers {
		if !matches(n, 16, isDigit, isDigit) || len(n) > 1 && n[0] == '0' {
			return false
		}
	}
	return true
}

func areIdentifiers(s string) bool {
	part := func(c byte) bool { return isAlnum(c) || c == '-' }
	for id := range strings.SplitSeq(s, ".") {
		if !matches(id, 128, part, part) {
			return false
		}
	}
	return true
}

// isRuleHost reports whether s is a lower-case DNS name, with or without a
// leading "*.".
func isRuleHost(s string) bool {
	name := strings.TrimPrefix(s, "*.")
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		alnum := func(c byte) bool { return isLower(c) || isDigit(c) }
		if !matches(label, 63, alnum, func(c byte) bool { return alnum(c) || c == '-' }) || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// isTarget reports whether s names what a job of this kind works on.
func isTarget(kind, s string) bool {
	if kind == "local" {
		folder, ok := strings.CutPrefix(s, "local:")
		inName := func(c byte) bool { return isNameByte(c) || c == ' ' || c == '@' || c == '+' }
		return ok && matches(folder, 255, inName, inName)
	}
	at := strings.LastIndexAny(s, "#!")
	if kind == "" || at < 0 || s[at] == '!' && kind != "gitlab" {
		return false
	}
	for part := range strings.SplitSeq(s[:at], "/") {
		if !isFlow(part) || part == "." || part == ".." {
			return false
		}
	}
	return len(s) <= 512 && matches(s[at+1:], 16, isDigit, isDigit)
}

// word returns a text that is valid, "" otherwise.
func word(v jsonval.Value, valid func(string) bool) exit.Word {
	if s, ok := v.Text(); ok && valid(s) {
		return exit.Word(s)
	}
	return ""
}

// oneOf returns a validator of a closed set.
func oneOf(set ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(set, s) }
}
