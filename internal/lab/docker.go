package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Docker returns the address of a Docker daemon that answers, "" for the
// client's own default. It ends the test when there is none.
func Docker(t testing.TB) string {
	t.Helper()
	host := os.Getenv("DOCKER_HOST")
	if out, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		Missing(t, "docker", fmt.Sprintf("docker version: %v: %.200s; start dockerd and set DOCKER_HOST", err, out))
	}
	return host
}

// Podman ends the test when there is no Podman that can start containers of the
// image that it returns.
func Podman(t testing.TB) (image string) {
	t.Helper()
	if out, err := exec.Command("podman", "info").CombinedOutput(); err != nil {
		Missing(t, "podman", fmt.Sprintf("podman info: %v: %.200s", err, out))
	}
	image = Image(t, "podman")
	if out, err := exec.Command("podman", "run", "--rm", "--network=none", "--pids-limit=64", image, "true").CombinedOutput(); err != nil {
		Missing(t, "podman", fmt.Sprintf("podman run: %v: %.200s; it needs cgroup v2", err, out))
	}
	return image
}

// Image returns an image of busybox for a client (docker or podman), made of
// what this host has. It knows nothing of a supervisor. Like every image of
// this package it is named by its content and stays there.
func Image(t testing.TB, client string) string {
	t.Helper()
	return importImage(t, client, "plain", nil)
}

// SupervisedImage returns an image of busybox whose entrypoint is the example
// supervisor, which reads a key, signs, and leaves the exit code as it is; its
// label says so.
func SupervisedImage(t testing.TB, client string) string {
	t.Helper()
	return importImage(t, client, "supervised", supervisorProgram(t),
		`ENTRYPOINT ["/supervisor","--key-stdin","--exit-file=/run/dispatch/exit.json","--"]`,
		"LABEL dispatch.capabilities=exitAuth")
}

// Supervisor returns the path of a static build of the example supervisor.
func Supervisor(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "supervisor")
	if err := os.WriteFile(path, supervisorProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Build returns the path of a static build of a package of this module.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

var supervisor struct {
	sync.Mutex
	program []byte
}

func supervisorProgram(t testing.TB) []byte {
	t.Helper()
	supervisor.Lock()
	defer supervisor.Unlock()
	if supervisor.program == nil {
		program, err := os.ReadFile(Build(t, "github.com/edgehero/dispatch/examples/supervisor"))
		if err != nil {
			t.Fatal(err)
		}
		supervisor.program = program
	}
	return supervisor.program
}

// importImage makes an image, unless it is there.
func importImage(t testing.TB, client, kind string, supervisor []byte, changes ...string) string {
	t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		Missing(t, "busybox", fmt.Sprintf("%v; install Debian's busybox-static", err))
	}
	digest := sha256.New()
	for _, part := range [][]byte{busybox, supervisor, []byte(strings.Join(changes, "\n"))} {
		fmt.Fprintf(digest, "%d:", len(part))
		digest.Write(part)
	}
	if client == "docker" {
		Docker(t)
	}
	ref := "dispatch-lab-" + kind + ":" + hex.EncodeToString(digest.Sum(nil)[:8])
	if exec.Command(client, "image", "inspect", ref).Run() == nil {
		return ref
	}
	args := []string{"import", "--change=ENV PATH=/bin"}
	for _, change := range changes {
		args = append(args, "--change="+change)
	}
	cmd := exec.Command(client, append(args, "-", ref)...)
	cmd.Stdin = tree(t, busybox, supervisor)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the image: %s import: %v\n%s", client, err, out)
	}
	return ref
}

// tree returns a tar of a root folder with busybox under all of its names.
func tree(t testing.TB, busybox, supervisor []byte) io.Reader {
	t.Helper()
	names, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		t.Fatalf("list busybox's names: %v", err)
	}
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	add := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	add(tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	add(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, busybox)
	for name := range strings.FieldsSeq(string(names)) {
		if name != "busybox" {
			add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
		}
	}
	if supervisor != nil {
		add(tar.Header{Name: "supervisor", Typeflag: tar.TypeReg, Mode: 0o755}, supervisor)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &text
}
