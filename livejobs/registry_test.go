package livejobs

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A stalled job is handed back while its first pickup still runs here.
func TestRegistryHoldsPickups(t *testing.T) {
	var r Registry
	first := Running{ID: "j", At: ms(1)}
	second := Running{ID: "j", At: ms(2)}
	orphan := Running{ID: "k", At: ms(3), Orphan: true}
	check := func(when string, wantRunning, wantOrphans []Running) {
		t.Helper()
		if running, orphans := r.Jobs(); !cmp.Equal(running, wantRunning) || !cmp.Equal(orphans, wantOrphans) {
			t.Errorf("%s: Jobs = %v, %v, want %v, %v", when, running, orphans, wantRunning, wantOrphans)
		}
	}
	check("empty", nil, nil)
	removeFirst := r.Add(first)
	removeSecond := r.Add(second)
	removeOrphan := r.Add(orphan)
	check("all", []Running{first, second}, []Running{orphan})
	removeSecond()
	removeSecond()
	check("the second's end, twice", []Running{first}, []Running{orphan})
	third := Running{ID: "j", At: ms(4)}
	r.Add(third)
	removeSecond()
	removeOrphan()
	check("a third", []Running{first, third}, nil)
	removeFirst()
	check("the first's end", []Running{third}, nil)
}

func TestRegistryGivesCopies(t *testing.T) {
	var r Registry
	job := Running{ID: "j", At: ms(1)}
	r.Add(job)
	running, _ := r.Jobs()
	running[0].ID = "changed"
	_ = append(running[:0], Running{})
	if got, _ := r.Jobs(); !cmp.Equal(got, []Running{job}) {
		t.Errorf("after a reader changed its copy Jobs = %v, want %v", got, job)
	}
}

func TestRegistryConcurrently(t *testing.T) {
	var r Registry
	r.Add(Running{ID: "stays", At: ms(1)})
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			own := Running{ID: "j", Project: fmt.Sprint("p", i), At: ms(1)}
			for range 200 {
				remove := r.Add(own)
				running, _ := r.Jobs()
				seen := 0
				for _, job := range running {
					if job == own {
						seen++
					}
				}
				if seen != 1 {
					t.Errorf("Jobs holds pickup %d %d times, want once", i, seen)
				}
				var removers sync.WaitGroup
				removers.Go(remove)
				removers.Go(remove)
				removers.Wait()
			}
		})
	}
	users.Wait()
	if running, _ := r.Jobs(); len(running) != 1 || running[0].ID != "stays" {
		t.Errorf("in the end Jobs = %v, want the one that stays", running)
	}
}
