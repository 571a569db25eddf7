package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnvFile(t *testing.T) {
	env := map[string]string{"B": "2", "A": "", "C_1": ` "quoted" $HOME # not a comment`, "_": "ä"}
	const want = "A=\nB=2\nC_1= \"quoted\" $HOME # not a comment\n_=ä\n"
	got, err := envFile(env, dockerV1)
	if err != nil || string(got) != want {
		t.Errorf("envFile = %q, %v, want %q", got, err, want)
	}
	if got, err := envFile(nil, dockerV1); err != nil || len(got) != 0 {
		t.Errorf("envFile of nothing = %q, %v", got, err)
	}
}

func TestEnvRefusals(t *testing.T) {
	const secret = "marked-secret"
	longest := strings.Repeat("x", maxEnvLine-len("LONG="))
	tests := []struct {
		name, value string
		dialect     Dialect
		ok          bool
	}{
		{"A", secret, dockerV1, true},
		{"LONG", longest, dockerV1, true},
		{"LONG", longest + "x", dockerV1, false},
		{"PI_DISPATCH_CHILD_LEDGER", secret, dockerV1, false},
		{"PI_DISPATCH_PRICE_TABLE", secret, dockerV1, false},
		{"PI_DISPATCH_RUNNER_PID", secret, dockerV1, false},
		{"1A", secret, dockerV1, false},
		{"", secret, dockerV1, false},
		{"A=B", secret, dockerV1, false},
		{"A B", secret, dockerV1, false},
		{"A\n", secret, dockerV1, false},
		{"Ä", secret, dockerV1, false},
		{"A", secret + "\x00", dockerV1, false},
		{"A", secret + "\nB=1", dockerV1, false},
		{"A", secret + "\r", dockerV1, false},
		{"A", secret + "\xff", dockerV1, false},
		{"A", `"` + secret + `"`, dockerV1, true},
		{"A", `"` + secret, podmanV2, false},
		{"A", `'` + secret, podmanV2, false},
		{"A", secret + `"`, podmanV2, true},
	}
	for _, test := range tests {
		text, err := envFile(map[string]string{test.name: test.value, "OTHER": secret}, test.dialect)
		if (err == nil) != test.ok {
			t.Errorf("envFile(%q=%.20q, %+v) = %v, want success %v", test.name, test.value, test.dialect, err, test.ok)
		}
		if err != nil && (len(text) > 0 || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), strings.Trim(test.name, "\nÄ"))) {
			t.Errorf("envFile(%q) = %q, %v, want an error that names the variable and shows no value", test.name, text, err)
		}
	}
	for _, name := range reservedEnv {
		if !ReservedEnv(name) {
			t.Errorf("ReservedEnv(%q) = false", name)
		}
	}
	if ReservedEnv("PATH") {
		t.Error("ReservedEnv(PATH) = true")
	}
}

// The client of a runtime gets no more of this process's environment than it
// needs to find its daemon.
func TestClientEnv(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "marked-secret")
	t.Setenv("HTTPS_PROXY", "http://proxy")
	t.Setenv("DOCKER_HOST", "unix:///of/the/environment")
	env := strings.Join(clientEnv("DOCKER_CONFIG=/empty"), "\n")
	if all := clientEnv("DOCKER_HOST=unix:///of/the/settings"); all[len(all)-1] != "DOCKER_HOST=unix:///of/the/settings" {
		t.Errorf("clientEnv = %q, want the settings last, where they count", all)
	}
	for _, want := range []string{"DOCKER_CONFIG=/empty", "DOCKER_HOST=unix:///of/the/environment", "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("the client's environment lacks %s:\n%s", want, env)
		}
	}
	for _, never := range []string{"marked-secret", "PROXY"} {
		if strings.Contains(env, never) {
			t.Errorf("the client's environment has %s:\n%s", never, env)
		}
	}
}

func TestRunFilesArePrivate(t *testing.T) {
	i := newTestInstance(t, t.TempDir())
	f, err := i.newRunFiles("nonce", []byte("A=marked\n"), true)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		f.env:                           0o600,
		f.folder:                        os.ModeDir | 0o700,
		i.files():                       os.ModeDir | 0o700,
		i.clientFolder():                os.ModeDir | 0o700,
		f.exit:                          os.ModeDir | 0o777, // for the job's user, below a private one
		filepath.Join(i.folder, i.ID()): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("mode of %s is %v, %v, want %v", filepath.Base(path), info.Mode(), err, want)
		}
	}
	if _, err := os.Stat(f.cid); err == nil {
		t.Error("the cidfile is there before the client, which refuses one")
	}
	if err := f.remove(); err != nil {
		t.Errorf("remove = %v", err)
	}
}
