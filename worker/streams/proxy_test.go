package streams

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// A proxy passes connections on to a server, until it is told to cut them.
type proxy struct {
	net.Listener
	t testing.TB

	mu     sync.Mutex
	target string
	conns  map[net.Conn]struct{} // both sides
	// cutAfter, when positive, cuts each connection somewhere within so many
	// bytes of an answer.
	cutAfter int
	cuts     int
	frozen   bool // nothing is passed on any more
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, t: t, target: target, conns: map[net.Conn]struct{}{}}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() { p.serve(conn) })
		}
	})
	return p
}

func (p *proxy) addr() string { return p.Listener.Addr().String() }

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		delete(p.conns, server)
		p.mu.Unlock()
	}()
	var both sync.WaitGroup
	both.Go(func() {
		p.pass(server, client, false)
		_ = server.Close()
		_ = client.Close()
	})
	p.pass(client, server, true)
	_ = server.Close()
	_ = client.Close()
	both.Wait()
}

// pass copies what one side says to the other. Of an answer it may cut off the
// end: the server has done what the client then can't know.
func (p *proxy) pass(to io.Writer, from io.Reader, answers bool) {
	buffer := make([]byte, 32<<10)
	passed, limit := 0, -1
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		if limit < 0 && p.cutAfter > 0 {
			limit = passed + rand.IntN(p.cutAfter)
		}
		cut := p.cutAfter > 0 && answers && passed+n > limit
		if cut {
			p.cuts++
			n = max(0, limit-passed)
		}
		frozen := p.frozen
		p.mu.Unlock()
		if frozen {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil || cut {
			return
		}
		passed += n
	}
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// cutting lets connections end within so many bytes of an answer; 0 ends that.
func (p *proxy) cutting(bytes int) (cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAfter = bytes
	return p.cuts
}

// freeze swallows what both sides say from now on.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// redirect passes new connections to another server.
func (p *proxy) redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func splitAddr(t testing.TB, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// inStep reports whether a replica has all that its master has.
func inStep(info string) bool {
	return strings.Contains(info, "master_link_status:up") && strings.Contains(info, "master_sync_in_progress:0")
}
