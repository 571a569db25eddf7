package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edgehero/dispatch/jobsize"
)

func newLedger(mem, cpu int64) *ledger {
	l := &ledger{}
	l.setBudget(jobsize.Budget{Mem: jobsize.Known(mem), CPU: jobsize.Known(cpu)})
	return l
}

// arrive lets a job of a size come to the ledger. It is admitted when the
// channel has its release.
func arrive(ctx context.Context, l *ledger, mem jobsize.MiB) <-chan func() {
	admitted := make(chan func(), 1)
	go func() {
		if release, err := l.acquire(ctx, jobsize.Size{Mem: mem, CPU: 1}); err == nil {
			admitted <- release
		}
		close(admitted)
	}()
	synctest.Wait() // it is in line, or in
	return admitted
}

func isAdmitted(admitted <-chan func()) bool { return len(admitted) == 1 }

func TestLedgerFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := newLedger(100, 1000)
		first := arrive(ctx, l, 60)
		second := arrive(ctx, l, 50)
		third := arrive(ctx, l, 50)
		if !isAdmitted(first) || isAdmitted(second) || isAdmitted(third) {
			t.Fatal("want the first alone admitted")
		}
		(<-first)()
		synctest.Wait()
		if !isAdmitted(second) || !isAdmitted(third) {
			t.Error("want the second and the third admitted once the first is gone")
		}
	})
}

// A large job is overtaken by at most maxOvertaken smaller ones, however many
// come and go.
func TestLedgerLargeJobIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := newLedger(100, 1000)
		running := []<-chan func(){arrive(ctx, l, 30), arrive(ctx, l, 30)}
		large := arrive(ctx, l, 100)
		overtook := 0
		for range 100 {
			small := arrive(ctx, l, 30)
			if isAdmitted(small) {
				overtook++
				running = append(running, small)
			}
			if len(running) > 2 || !isAdmitted(small) && len(running) > 0 {
				(<-running[0])()
				running = running[1:]
				synctest.Wait()
			}
			if isAdmitted(large) {
				break
			}
		}
		if !isAdmitted(large) {
			t.Fatal("the large job was never admitted")
		}
		if overtook != maxOvertaken {
			t.Errorf("%d small jobs overtook the large one, want %d: the bound, and no waste below it", overtook, maxOvertaken)
		}
	})
}

// A waiter that leaves, or whom nobody may overtake any more, blocks nobody.
func TestLedgerLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(100, 1000)
		first := arrive(t.Context(), l, 60)
		ctx, leave := context.WithCancelCause(t.Context())
		var got error
		go func() { _, got = l.acquire(ctx, jobsize.Size{Mem: 100}) }()
		synctest.Wait()
		l.line[0].overtaken = maxOvertaken
		small := arrive(t.Context(), l, 10)
		if isAdmitted(small) {
			t.Fatal("a small job overtook one that nobody may overtake")
		}
		cause := errors.New("its cause")
		leave(cause)
		synctest.Wait()
		if got != cause {
			t.Errorf("acquire returned %v, want the context's cause", got)
		}
		if !isAdmitted(small) {
			t.Error("the small job still waits")
		}
		(<-first)()
		(<-small)()
		if used, holders, waiting := l.usage(); used != (jobsize.Size{}) || holders != 0 || waiting != 0 {
			t.Errorf("usage() = %v, %d, %d, want nothing", used, holders, waiting)
		}
	})
}

func TestLedgerDimensions(t *testing.T) {
	known, off, unknown := jobsize.Known(100), jobsize.Off(), jobsize.Limit{}
	tests := []struct {
		budget jobsize.Budget
		size   jobsize.Size // beside one of 50, 50
		want   bool
	}{
		{jobsize.Budget{Mem: known, CPU: known}, jobsize.Size{Mem: 50, CPU: 50}, true},
		{jobsize.Budget{Mem: known, CPU: known}, jobsize.Size{Mem: 51, CPU: 50}, false},
		{jobsize.Budget{Mem: known, CPU: known}, jobsize.Size{Mem: 50, CPU: 51}, false},
		{jobsize.Budget{Mem: off, CPU: known}, jobsize.Size{Mem: 51, CPU: 50}, true},
		{jobsize.Budget{Mem: unknown, CPU: known}, jobsize.Size{Mem: 51, CPU: 50}, true},
		{jobsize.Budget{Mem: known, CPU: off}, jobsize.Size{Mem: 50, CPU: 51}, true},
		{jobsize.Budget{}, jobsize.Size{Mem: 1 << 20, CPU: 25600}, true},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			l := &ledger{budget: tt.budget}
			if _, err := l.acquire(ctx, jobsize.Size{Mem: 50, CPU: 50}); err != nil {
				t.Fatal(err)
			}
			admitted := false
			go func() {
				_, err := l.acquire(ctx, tt.size)
				admitted = err == nil
			}()
			synctest.Wait()
			if admitted != tt.want {
				t.Errorf("budget %v, size %v beside 50, 50: admitted %v, want %v", tt.budget, tt.size, admitted, tt.want)
			}
			stop()
			synctest.Wait()
		})
	}
}

// A budget that shrank below a waiting job's size never blocks the line.
func TestLedgerShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(100, 1000)
		first, second := arrive(t.Context(), l, 60), arrive(t.Context(), l, 60)
		l.setBudget(jobsize.Budget{Mem: jobsize.Known(10)})
		(<-first)()
		synctest.Wait()
		if !isAdmitted(second) {
			t.Error("the second job waits although nothing runs")
		}
	})
}

// However jobs come, wait, leave and go, what is held fits the budget, and at
// the end nothing is.
func TestLedgerNeverOverbooks(t *testing.T) {
	l := newLedger(1000, 1000)
	var mu sync.Mutex
	var held, most jobsize.MiB
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 500 {
				size := jobsize.Size{Mem: jobsize.MiB(1 + rand.IntN(600)), CPU: 1}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(200))*time.Microsecond)
				release, err := l.acquire(ctx, size)
				if err == nil {
					mu.Lock()
					held += size.Mem
					most = max(most, held)
					mu.Unlock()
					mu.Lock()
					held -= size.Mem
					mu.Unlock()
					release()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if most > 1000 {
		t.Errorf("%d MiB were held at one time of 1000", most)
	}
	if used, holders, waiting := l.usage(); used != (jobsize.Size{}) || holders != 0 || waiting != 0 {
		t.Errorf("usage() = %v, %d, %d, want nothing", used, holders, waiting)
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Base: 10 * time.Second, Max: time.Minute}
	tests := []struct {
		attempt int
		random  float64
		want    time.Duration
	}{
		{1, 0, 10 * time.Second},
		{2, 0, 20 * time.Second},
		{3, 0, 40 * time.Second},
		{4, 0, time.Minute},
		{1 << 30, 0, time.Minute},
		{1, 0.5, 7500 * time.Millisecond},
		{4, 0.5, 45 * time.Second},
	}
	for _, tt := range tests {
		if got := b.after(tt.attempt, tt.random); got != tt.want {
			t.Errorf("after(%d, %v) = %v, want %v", tt.attempt, tt.random, got, tt.want)
		}
	}
	for range 1000 {
		b := Backoff{Base: time.Duration(rand.Int64()), Max: time.Duration(rand.Int64())}
		attempt, random := rand.IntN(100), rand.Float64()
		most := b.after(attempt, 0)
		got := b.after(attempt, random)
		if most > b.Max || got > most || got < most/2 {
			t.Errorf("%v.after(%d, %v) = %v, want from %v to %v", b, attempt, random, got, most/2, most)
		}
	}
}
