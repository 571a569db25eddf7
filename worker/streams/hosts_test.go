package streams

import (
	"slices"
	"testing"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

// TestTooLargeForOneHost has a job that one of two hosts can take, and one that
// neither can.
func TestTooLargeForOneHost(t *testing.T) {
	t.Parallel()
	server := lab.Redis(t)
	s := newScene(t, server.Addr, outageLease)
	hosts := []string{"small", "large"}
	small := s.start(child{Addr: server.Addr, Host: "small", Hosts: hosts, Memory: 256})
	s.submitJob(worker.Job{ID: "middle", Size: jobsize.Request{Memory: "1g"}})
	s.await("job_passed_on", "middle", 1)
	large := s.start(child{Addr: server.Addr, Host: "large", Hosts: hosts, Memory: 2048})
	s.submitJob(worker.Job{ID: "huge", Size: jobsize.Request{Memory: "8g"}})
	s.await("ended", "middle", 1)
	s.await("ended", "huge", 1)
	if where := s.hostsOf("start", "middle"); !slices.Equal(where, []string{"large"}) {
		t.Errorf("job middle ran on %q, want large", where)
	}
	if where := s.hostsOf("start", "huge"); where != nil {
		t.Errorf("job huge ran on %q, want it refused", where)
	}
	passed := s.hostsOf("job_passed_on", "huge")
	refused := s.hostsOf("ended", "huge")
	if len(passed) != 1 || len(refused) != 1 || passed[0] == refused[0] {
		t.Errorf("job huge was passed on by %q and refused by %q, want one host each", passed, refused)
	}
	rec, err := s.queue.Record(t.Context(), "huge")
	if err != nil || rec == nil || rec.Outcome != record.Policy || rec.HostBudget == nil {
		t.Errorf("Record(huge) = %+v, %v, want a refusal with the host's budget", rec, err)
	}
	small.stop()
	large.stop()
}

func (s *scene) hostsOf(what, job string) (hosts []string) {
	for _, words := range s.lines() {
		if words[0] == what && words[1] == job {
			hosts = append(hosts, words[3])
		}
	}
	return hosts
}
