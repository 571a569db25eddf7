package streams

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
)

// outage is how long a server is away in a test. DISPATCH_REDIS_OUTAGE names
// another duration.
func outage(t *testing.T) time.Duration {
	text := os.Getenv("DISPATCH_REDIS_OUTAGE")
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("DISPATCH_REDIS_OUTAGE: %v", err)
	}
	return d
}

// outageLease is shorter than an outage, and long enough that a busy machine's
// worker renews it in time.
const outageLease = 3 * time.Second

// underLoad has three workers and a steady load, does something to the server
// when a third of the jobs have started, and returns what became of the jobs.
func underLoad(t *testing.T, s *scene, addr string, harm func()) tally {
	t.Helper()
	var workers []*process
	for _, host := range []string{"host-a", "host-b", "host-c"} {
		workers = append(workers, s.start(child{Addr: addr, Host: host}))
	}
	const jobs = 300
	load := make(chan struct{})
	go func() {
		defer close(load)
		s.submit("job", jobs, 5*time.Millisecond)
	}()
	s.await("start", "", jobs/3)
	harm()
	<-load
	result := s.settled(0)
	for _, w := range workers {
		w.stop()
	}
	return result
}

func TestServerRestarted(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	s := newScene(t, server.Addr, outageLease)
	result := underLoad(t, s, server.Addr, func() {
		server.Stop()
		time.Sleep(outage(t)) // the outage
		server.Start()
	})
	if result.again > 0 {
		t.Errorf("%d attempts ran twice, want 0: no worker was lost", result.again)
	}
}

func TestServerPaused(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	s := newScene(t, server.Addr, outageLease)
	result := underLoad(t, s, server.Addr, func() {
		server.Pause()
		time.Sleep(outage(t)) // the outage
		server.Resume()
	})
	if result.again > 0 {
		t.Errorf("%d attempts ran twice, want 0: no worker was lost", result.again)
	}
}

// TestConnectionsCut has every connection end somewhere in an answer, again and
// again: the server has done what was asked, and nobody was told.
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	p := newProxy(t, server.Addr)
	s := newScene(t, p.addr(), 10*time.Second)
	cuts := 0
	result := underLoad(t, s, p.addr(), func() {
		p.cutting(4000)
		s.await("start", "", 250)
		cuts = p.cutting(0)
	})
	t.Logf("%d connections were cut", cuts)
	if cuts < 5 {
		t.Errorf("%d connections were cut, want 5 at least", cuts)
	}
	if result.again > 0 {
		t.Errorf("%d attempts ran twice, want 0: no worker was lost", result.again)
	}
}

// TestReplicaPromoted loses the last writes of a server with it: its replica is
// cut off first, and then takes its place.
func TestReplicaPromoted(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	link := newProxy(t, server.Addr)
	replica := lab.Redis(t)
	s := newScene(t, server.Addr, outageLease)
	promote := openClient(t, replica.Addr)
	ask := func(words ...string) string {
		t.Helper()
		text, err := promote.Do(t.Context(), promote.B().Arbitrary(words...).Build()).ToString()
		if err != nil {
			t.Fatalf("%v = %v, want no error", words, err)
		}
		return text
	}
	host, port := splitAddr(t, link.addr())
	ask("REPLICAOF", host, port)
	s.until("the replica to be in step", func() bool { return inStep(ask("INFO", "replication")) })

	front := newProxy(t, server.Addr)
	s.queue = open(t, Config{Client: openClient(t, front.addr()), Prefix: s.prefix, Lease: s.lease})
	var workers []*process
	for _, host := range []string{"host-a", "host-b", "host-c"} {
		workers = append(workers, s.start(child{Addr: front.addr(), Host: host}))
	}
	load := make(chan struct{})
	go func() {
		defer close(load)
		s.submit("job", 300, 5*time.Millisecond)
	}()
	s.await("ended", "", 50)
	link.freeze()
	before := s.count("ended", "")
	s.await("ended", "", before+50) // what the replica never hears of
	server.Kill()
	front.redirect(replica.Addr)
	front.cut()
	ask("REPLICAOF", "NO", "ONE")
	<-load
	result := s.settled(300)
	if result.fromRecord == 0 {
		t.Error("no job was settled from its record, want those that the replica did not know as settled")
	}
	if result.lost > 200 {
		t.Errorf("%d of 300 jobs are unknown", result.lost)
	}
	for _, w := range workers {
		w.stop()
	}
}

// TestWorkersKilled kills workers at random instants and starts others.
func TestWorkersKilled(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	s := newScene(t, server.Addr, time.Second)
	load := make(chan struct{})
	go func() {
		defer close(load)
		s.submit("job", 300, 10*time.Millisecond)
	}()
	for range 6 {
		w := s.start(child{Addr: server.Addr, Host: "host-a"})
		other := s.start(child{Addr: server.Addr, Host: "host-b"})
		seen := s.count("start", "")
		s.await("start", "", min(seen+20, 300))
		w.kill()
		other.kill()
	}
	last := s.start(child{Addr: server.Addr, Host: "host-a"})
	<-load
	result := s.settled(0)
	if result.again == 0 {
		t.Error("no attempt ran again, want those whose worker was killed")
	}
	last.stop()
}

// TestWorkerStopped stops a worker past its lease. When it goes on, its job is
// another one's, which has settled it.
func TestWorkerStopped(t *testing.T) {
	for _, finish := range []bool{false, true} {
		name := "stops its run"
		if finish {
			name = "finishes its run"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := lab.Redis(t)
			s := newScene(t, server.Addr, time.Second)
			first := s.start(child{Addr: server.Addr, Host: "host-a", Finish: finish})
			s.submit("hold", 1, 0)
			s.await("start", "hold-0", 1)
			first.signal(syscall.SIGSTOP)
			second := s.start(child{Addr: server.Addr, Host: "host-b"})
			s.await("start", "hold-0", 2)
			s.release("hold-0")
			s.await("ended", "hold-0", 1)
			first.signal(syscall.SIGCONT)
			s.await("lease_lost", "hold-0", 1)
			result := s.settled(0)
			if result.settled != 1 || result.starts != 2 || result.leasesLost != 1 {
				t.Errorf("%+v, want 2 starts, 1 settled, 1 lease lost", result)
			}
			first.stop()
			second.stop()
		})
	}
}
