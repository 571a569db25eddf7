package streams

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
)

// A network is a switch and some hosts on it, each a network namespace.
type network struct {
	t    *testing.T
	name string
	addr string // this process's on it
	port map[string]string
}

func newNetwork(t *testing.T, hosts ...string) *network {
	t.Helper()
	if os.Getuid() != 0 {
		lab.Missing(t, "netns", "network namespaces are made by root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		lab.Missing(t, "netns", fmt.Sprintf("%v; install Debian's iproute2", err))
	}
	id := os.Getpid() % 10000
	subnet := fmt.Sprintf("10.%d.%d.", 100+id%100, id/100)
	n := &network{t: t, name: fmt.Sprintf("dt%d", id), addr: subnet + "1", port: map[string]string{}}
	if out, err := exec.Command("ip", "link", "add", n.name, "type", "bridge").CombinedOutput(); err != nil {
		lab.Missing(t, "netns", fmt.Sprintf("ip link add: %v: %.200s", err, out))
	}
	t.Cleanup(func() { n.ip("link", "del", n.name) })
	n.ip("addr", "add", n.addr+"/24", "dev", n.name)
	n.ip("link", "set", n.name, "up")
	for i, host := range hosts {
		space, outer, inner := n.space(host), fmt.Sprintf("%so%d", n.name, i), fmt.Sprintf("%si%d", n.name, i)
		n.port[host] = outer
		n.ip("netns", "add", space)
		t.Cleanup(func() { n.ip("netns", "del", space) }) // takes its end of the cable along
		n.ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
		n.ip("link", "set", outer, "master", n.name)
		n.ip("link", "set", outer, "up")
		n.ip("-n", space, "addr", "add", fmt.Sprintf("%s%d/24", subnet, 10+i), "dev", inner)
		n.ip("-n", space, "link", "set", inner, "up")
		n.ip("-n", space, "link", "set", "lo", "up")
	}
	return n
}

func (n *network) space(host string) string { return n.name + "-" + host }

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Errorf("ip %v: %v: %s", args, err, out)
	}
}

// cut pulls a host's cable, heal puts it back.
func (n *network) cut(host string)  { n.t.Helper(); n.ip("link", "set", n.port[host], "down") }
func (n *network) heal(host string) { n.t.Helper(); n.ip("link", "set", n.port[host], "up") }

// TestHostCutOff has three hosts, of which one is cut off past its lease while it
// runs a job, and comes back. Each has records of its own.
func TestHostCutOff(t *testing.T) {
	t.Parallel()
	hosts := []string{"host-a", "host-b", "host-c"}
	n := newNetwork(t, hosts...)
	server := lab.RedisOn(t, n.addr)
	s := newScene(t, server.Addr, outageLease)
	var stores []string
	workers := map[string]*process{}
	for _, host := range hosts {
		stores = append(stores, filepath.Join(s.dir, host))
		workers[host] = s.start(child{Addr: server.Addr, Host: host, Records: filepath.Join(s.dir, host), Hosts: hosts, Slots: 4},
			"ip", "netns", "exec", n.space(host))
	}
	s.submit("hold", 3, 0)
	s.await("start", "", 3)
	cutOff := ""
	for _, words := range s.lines() {
		if words[0] == "start" && words[1] == "hold-1" {
			cutOff = words[3]
		}
	}
	n.cut(cutOff)
	s.submit("job", 100, 5*time.Millisecond)
	s.await("start", "hold-1", 2) // elsewhere, after its lease
	for i := range 3 {
		s.release(fmt.Sprint("hold-", i))
	}
	s.await("ended", "hold-1", 1)
	n.heal(cutOff)
	s.await("lease_lost", "hold-1", 1)
	s.submit("more", 50, 5*time.Millisecond)
	result := s.settled(0, stores...)
	if result.leasesLost == 0 || result.again == 0 {
		t.Errorf("%+v, want leases lost and attempts made again", result)
	}
	for _, w := range workers {
		w.stop()
	}
}
