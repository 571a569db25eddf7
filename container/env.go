package container

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEnvLine is the longest line of an env file that every client reads, in
// bytes, less one for its newline.
const maxEnvLine = 64<<10 - 1

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedEnv are the names that the worker and the runner set themselves. A
// job that bound one could forge what they mean.
var reservedEnv = []string{
	"PI_DISPATCH_CHILD_LEDGER",
	"PI_DISPATCH_PRICE_TABLE",
	"PI_DISPATCH_RUNNER_PID",
}

// ReservedEnv reports whether a job may not bind the name.
func ReservedEnv(name string) bool { return slices.Contains(reservedEnv, name) }

// CheckEnv returns an ErrSpec that names the first variable, in order, that no
// container can be given. A value never stands in it.
func CheckEnv(env map[string]string) error {
	if err := checkEnv(env); err != nil {
		return fmt.Errorf("check the environment: %w: %w", ErrSpec, err)
	}
	return nil
}

func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if fault := envFault(name, env[name]); fault != "" {
			return fmt.Errorf("variable %.80q %s", name, fault)
		}
	}
	return nil
}

func envFault(name, value string) string {
	switch {
	case !envName.MatchString(name):
		return "is not a name of letters, digits and _"
	case ReservedEnv(name):
		return "is reserved: the worker and the runner set it themselves"
	case strings.ContainsAny(value, "\x00\n\r"):
		return "has a value with a NUL or a line break: mount a file instead"
	case !utf8.ValidString(value):
		return "has a value that is not UTF-8: mount a file instead"
	case len(name)+1+len(value) > maxEnvLine:
		return "is 64 KiB or longer with its value: mount a file instead"
	}
	return ""
}

// envFile returns the text of an env file. Every line is NAME=value: a bare
// name would import the host's variable.
func envFile(env map[string]string, d Dialect) ([]byte, error) {
	if err := CheckEnv(env); err != nil {
		return nil, err
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		// Podman takes quotes around a value away, and reads on to the closing
		// one.
		if d.Podman && (strings.HasPrefix(value, `"`) || strings.HasPrefix(value, `'`)) {
			return nil, fmt.Errorf("check the environment: %w: variable %.80q has a value that begins with a quote, which Podman takes away: mount a file instead", ErrSpec, name)
		}
		text = fmt.Appendf(text, "%s=%s\n", name, value)
	}
	return text, nil
}

// clientEnv is the environment that a client of a runtime gets: what it needs
// to find its daemon, and nothing else of this process's, whose secrets would
// show in /proc. The settings come last, and count.
func clientEnv(settings ...string) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "USER", "TMPDIR", "LANG",
		"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION",
		"CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
		"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, settings...)
}
