package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/worker"
)

// drawEvery is how often the lines of running jobs are drawn anew.
const drawEvery = 500 * time.Millisecond

// A display keeps a line for each running job at the bottom of a terminal. A nil
// display, which is what there is without a terminal, does nothing.
type display struct {
	terminal *os.File
	color    bool

	mu       sync.Mutex
	live     *livejobs.Registry // nil: no lines are shown
	memory   *memoryNow
	frame    frame
	stopping bool
	last     map[string]string // the last line of output, by job
}

// openDisplay returns a display when standard output is a terminal that can move
// its cursor. What the program writes from then on scrolls by above its lines.
func (p *program) openDisplay() *display {
	terminal, ok := p.stdout.(*os.File)
	if !ok || !isTerminal(terminal) || p.getenv("TERM") == "dumb" {
		return nil
	}
	d := &display{terminal: terminal, color: p.getenv("NO_COLOR") == "", last: map[string]string{}}
	p.stdout = aboveWriter{d, terminal}
	if file, ok := p.stderr.(*os.File); ok && isTerminal(file) {
		p.stderr = aboveWriter{d, file}
	}
	return d
}

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// start shows the jobs of live until the returned function is called, which takes
// the lines away. ctx ends when the worker is to stop.
func (d *display) start(ctx context.Context, live *livejobs.Registry, list listJobs) (stop func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	d.live, d.memory = live, &memoryNow{list: list}
	d.mu.Unlock()
	ended := make(chan struct{})
	measuring, stopMeasuring := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { d.keepDrawn(ctx, ended) })
	work.Go(func() { d.memory.keep(measuring, live) })
	return func() {
		close(ended)
		stopMeasuring()
		work.Wait()
		d.mu.Lock()
		d.live = nil
		d.mu.Unlock()
		d.draw(d.terminal, "")
	}
}

// keepDrawn draws every now and then and when the window's size changes.
func (d *display) keepDrawn(ctx context.Context, ended <-chan struct{}) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	stopped := ctx.Done()
	for {
		select {
		case <-ended:
			return
		case <-stopped:
			stopped = nil
			d.mu.Lock()
			d.stopping = true
			d.mu.Unlock()
		case <-resized:
		case <-ticker.C:
		}
		d.draw(d.terminal, "")
	}
}

// output takes a line of a job's output.
func (d *display) output(job string, line []byte) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[job] = printable(line)
}

// draw writes text to a writer of the terminal, above the lines of the jobs that
// run now.
func (d *display) draw(to io.Writer, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.screen()
	// One write, so that nothing flickers and nothing of another writer comes
	// between.
	_, _ = io.WriteString(to, d.frame.replace(text, layOut(d.lines(time.Now()), s), s.columns))
}

// outputHook is the hook that gives a worker's output to the display, nil for
// none.
func (d *display) outputHook() func(context.Context, worker.Pickup, []byte) error {
	if d == nil {
		return nil
	}
	return func(_ context.Context, at worker.Pickup, line []byte) error {
		d.output(at.Job.ID, line)
		return nil
	}
}

func (d *display) screen() screen {
	s := screen{columns: 80, rows: 24, color: d.color}
	if size, err := unix.IoctlGetWinsize(int(d.terminal.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		s.columns, s.rows = int(size.Col), int(size.Row)
	}
	return s
}

// lines returns what is known of the jobs that run, and forgets the output of
// those that do not.
func (d *display) lines(now time.Time) []jobLine {
	if d.live == nil {
		return nil
	}
	running, orphans := d.live.Jobs()
	var lines []jobLine
	last := map[string]string{}
	for _, job := range append(running, orphans...) {
		state := stateRunning
		switch {
		case job.Orphan:
			state = stateOrphan
		case d.stopping:
			state = stateStopping
		}
		if text, ok := d.last[job.ID]; ok {
			last[job.ID] = text
		}
		lines = append(lines, jobLine{
			ID: job.ID, State: state, Elapsed: now.Sub(job.At), Memory: d.memory.of(job.ID), Size: job.Mem, Last: d.last[job.ID],
		})
	}
	d.last = last
	return lines
}

// An aboveWriter writes whole lines to a terminal above the display's.
type aboveWriter struct {
	d  *display
	to io.Writer
}

func (w aboveWriter) Write(b []byte) (int, error) {
	w.d.draw(w.to, string(b))
	return len(b), nil
}
