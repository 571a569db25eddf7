package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A RedisServer is a Redis server of the test's own, with append-only
// persistence, on a port of a loopback address. It ends with the test.
type RedisServer struct {
	// Addr is its host:port.
	Addr string

	t    testing.TB
	host string
	port string
	dir  string
	args []string

	mu  sync.Mutex
	cmd *exec.Cmd
	log *bytes.Buffer
}

// Redis starts a server. args are further ones of redis-server.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	return RedisOn(t, "127.0.0.1", args...)
}

// RedisOn starts a server on a port of a host's address.
func RedisOn(t testing.TB, host string, args ...string) *RedisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		Missing(t, "redis", fmt.Sprintf("%v; install Debian's redis-server", err))
	}
	s := &RedisServer{t: t, host: host, port: freePort(t, host), dir: t.TempDir(), args: args}
	s.Addr = net.JoinHostPort(host, s.port)
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// RedisAddr returns the host:port of a server for a test that only needs one: that
// which DISPATCH_REDIS names, else one of its own. The test keeps to key names of
// its own.
func RedisAddr(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("DISPATCH_REDIS"); addr != "" {
		return addr
	}
	return Redis(t).Addr
}

func freePort(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("find a free port of %s: %v", host, err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// Start starts the server on its port with what it has persisted, and waits until
// it answers.
func (s *RedisServer) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = &bytes.Buffer{}
	s.cmd = exec.Command("redis-server", append([]string{
		"--bind", s.host, "--port", s.port, "--dir", s.dir, "--save", "", "--appendonly", "yes",
		"--daemonize", "no", "--protected-mode", "no",
	}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !answers(ctx, s.Addr) {
		if ctx.Err() != nil {
			s.t.Fatalf("redis-server on %s does not answer", s.Addr)
		}
		time.Sleep(10 * time.Millisecond) // between two questions
	}
}

// answers reports whether a server has loaded what it persisted.
func answers(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 7)
	n, _ := conn.Read(answer)
	return string(answer[:n]) == "+PONG\r\n"
}

// Stop ends the server as an operator does: what it took is on disk.
func (s *RedisServer) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server at once. It may have been ended before.
func (s *RedisServer) Kill() { s.end(syscall.SIGKILL) }

func (s *RedisServer) end(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait() // the signal is its end
	s.cmd = nil
}

// Pause makes the server hang until Resume.
func (s *RedisServer) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *RedisServer) Resume() { s.signal(syscall.SIGCONT) }

func (s *RedisServer) signal(signal syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.t.Fatalf("signal redis-server: it was ended before")
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("signal redis-server: %v", err)
	}
}
