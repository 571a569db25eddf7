// Command embed is a small control plane of its own: it takes jobs over HTTP,
// runs each as a process of this host, and says what became of them. It shows
// how a program embeds the library; what it runs has no walls around it.
//
//	POST   /jobs         {"id": "a", "command": ["echo", "hello"]}
//	GET    /jobs/{id}    where the job stands, and its record once there is one
//	DELETE /jobs/{id}    cancel it
//	GET    /debug/vars   the worker's numbers
package main

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/container/supervisor"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
	"github.com/edgehero/dispatch/worker"
)

func main() {
	// The program is the supervisor of the jobs it runs.
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	addr := flag.String("addr", "127.0.0.1:8080", "the `address` to listen on")
	data := flag.String("data", "embed-data", "the `folder` for records and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := newPlane(*data)
	if err != nil {
		log.Fatal(err)
	}
	expvar.Publish("dispatch", expvar.Func(func() any { return p.worker.Stats() }))
	go func() { log.Fatal(http.ListenAndServe(*addr, p.handler())) }()
	if err := p.worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A plane is the control plane: a queue, a worker and the records between them.
type plane struct {
	queue   worker.Memory
	records record.Store
	worker  *worker.Worker
}

// A job is what a request asks for and what travels as the queued job's data.
type job struct {
	ID      string   `json:"id"`
	Command []string `json:"command"`
}

func newPlane(data string) (*plane, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	runtime, err := container.NewProcess(container.ProcessConfig{Supervisor: []string{self, "supervise"}})
	if err != nil {
		return nil, err
	}
	p := &plane{records: record.Store{Dir: data}}
	p.worker, err = worker.New(worker.Config{
		Queue: &p.queue, Runtime: runtime, Records: &p.records, Host: "embed", Slots: 4,
		DefaultSize: jobsize.Request{Memory: "256m", CPUs: "0.5"},
		Hooks:       worker.Hooks{Prepare: prepare},
		OpenLog: func(jobID string) io.WriteCloser {
			return p.records.OpenLog(jobID, record.LogOptions{Enabled: true})
		},
	})
	return p, err
}

func prepare(_ context.Context, p worker.Pickup) (worker.Preparation, error) {
	var j job
	if err := json.Unmarshal(p.Job.Data, &j); err != nil || len(j.Command) == 0 {
		return worker.Preparation{}, &worker.Refusal{Reason: "prepare-refused", Why: "no-command"}
	}
	return worker.Preparation{Spec: container.Spec{Args: j.Command, PlainCommand: true}}, nil
}

func (p *plane) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", p.submit)
	mux.HandleFunc("GET /jobs/{id}", p.status)
	mux.HandleFunc("DELETE /jobs/{id}", p.cancel)
	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux
}

func (p *plane) submit(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var j job
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil || len(j.Command) == 0 {
		http.Error(w, "want a JSON object with an id and a command", http.StatusBadRequest)
		return
	}
	answer(w, http.StatusAccepted, j, p.queue.Submit(r.Context(), worker.Job{ID: j.ID, Data: data}))
}

func (p *plane) status(w http.ResponseWriter, r *http.Request) {
	s, err := p.queue.Status(r.Context(), r.PathValue("id"))
	view := map[string]any{"id": s.Job.ID, "state": s.State, "attempts": s.Attempts}
	if rec, readErr := p.records.Read(s.Job.ID); readErr == nil {
		view["record"] = rec
	}
	answer(w, http.StatusOK, view, err)
}

func (p *plane) cancel(w http.ResponseWriter, r *http.Request) {
	a, err := p.queue.Cancel(r.Context(), r.PathValue("id"))
	answer(w, http.StatusOK, map[string]worker.CancelAnswer{"cancel": a}, err)
}

// answer writes a value, or the error in its place.
func answer(w http.ResponseWriter, status int, value any, err error) {
	switch {
	case errors.Is(err, worker.ErrUnknownJob):
		status = http.StatusNotFound
	case errors.Is(err, worker.ErrDuplicate):
		status = http.StatusConflict
	case err != nil:
		status = http.StatusBadRequest
	}
	if err != nil {
		value = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}
