package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"strings"
	"testing"
)

// Each flag of each command can be given as an environment variable.
func TestEveryFlagHasAVariable(t *testing.T) {
	for _, c := range commands() {
		var help strings.Builder
		asked := map[string]bool{}
		p := &program{command: c, stdout: &help, stderr: io.Discard, getenv: func(name string) string {
			asked[name] = true
			return ""
		}}
		if err := c.run(context.Background(), p, []string{"-h"}); err != flag.ErrHelp {
			t.Errorf("%s -h: %v, want the help", c.name, err)
		}
		for _, match := range flagLine.FindAllStringSubmatch(help.String(), -1) {
			if name := "DISPATCH_" + strings.ToUpper(strings.ReplaceAll(match[1][1:], "-", "_")); !asked[name] {
				t.Errorf("%s does not read %s", c.name, name)
			}
		}
	}
}

func TestFlagsFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name   string
		env    map[string]string
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"a variable", map[string]string{"DISPATCH_MEMORY": "1g"}, "size", exitOK, "memory      1g ", ""},
		{"the command line wins", map[string]string{"DISPATCH_MEMORY": "1g"}, "size -memory 512m", exitOK, "memory      512m ", ""},
		{"a hyphen is an underscore", map[string]string{"DISPATCH_CPU_CEILING": "1.5"}, "size", exitOK, "cpu.max     150000 100000 ", ""},
		{"a flag without a value", map[string]string{"DISPATCH_JSON": "true"}, "size", exitOK, `"memMiB": 4096`, ""},
		{"an empty one is none", map[string]string{"DISPATCH_MEMORY": ""}, "size", exitOK, "memory      4g ", ""},
		{"a bad value", map[string]string{"DISPATCH_JSON": "perhaps"}, "size", exitUsage, "", `environment variable DISPATCH_JSON: bad value "perhaps"`},
		{"one of another command", map[string]string{"DISPATCH_SLOTS": "many"}, "size", exitOK, "memory      4g ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			p := &program{stdout: &out, stderr: &errs, getenv: func(name string) string { return tt.env[name] }}
			code := p.main(t.Context(), strings.Fields(tt.args))
			if code != tt.code || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
				t.Errorf("%s with %v = %d, %q, %q, want %d, %q and %q", tt.args, tt.env, code, out.String(), errs.String(), tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}
