package spool

import (
	"testing"

	"github.com/edgehero/dispatch/internal/queuetest"
	"github.com/edgehero/dispatch/worker"
)

// openTest opens a spool that ends with the test.
func openTest(t testing.TB, dir, host string) *Spool {
	t.Helper()
	s, err := Open(Config{Dir: dir, Host: host})
	if err != nil {
		t.Fatalf("Open = %v, want no error", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// vanish does to a spool what the kernel does when its process is killed.
func (s *Spool) vanish() { _ = s.instance.Close(true) }

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, kills bool) queuetest.Queue {
		dir := t.TempDir()
		return queuetest.Queue{
			Producer: openTest(t, dir, ""),
			Worker:   func(host string) worker.Queue { return openTest(t, dir, host) },
			Kill:     func(w worker.Queue) { w.(*Spool).vanish() },
			OneHost:  true,
		}
	})
}

// TestOneProcess has every worker and the producer in one instance.
func TestOneProcess(t *testing.T) {
	queuetest.RunWithoutKills(t, func(t *testing.T, _ bool) queuetest.Queue {
		byHost := map[string]*Spool{}
		dir := t.TempDir()
		on := func(host string) *Spool {
			if byHost[host] == nil {
				byHost[host] = openTest(t, dir, host)
			}
			return byHost[host]
		}
		return queuetest.Queue{
			Producer: on("host-a"),
			Worker:   func(host string) worker.Queue { return on(host) },
			OneHost:  true,
		}
	})
}
