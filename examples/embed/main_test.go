package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/edgehero/dispatch/container/supervisor"
)

// TestMain is the supervisor when the worker starts this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// do sends a request and returns its status and its JSON.
func do(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var view map[string]any
	json.Unmarshal(text, &view) // an error is plain text
	return res.StatusCode, view
}

// until asks for a job until it is in a state.
func until(t *testing.T, url, state string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, view := do(t, "GET", url, "")
		if view["state"] == state {
			return view
		}
		select {
		case <-ctx.Done():
			t.Fatalf("GET %s = %v after a minute, want state %q", url, view, state)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestPlane(t *testing.T) {
	p, err := newPlane(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.worker.Run(ctx) }()
	server := httptest.NewServer(p.handler())
	defer server.Close()
	jobs := server.URL + "/jobs"

	for _, body := range []string{"", "{", `{"id": "a"}`, `{"id": "", "command": ["true"]}`} {
		if status, _ := do(t, "POST", jobs, body); status != http.StatusBadRequest {
			t.Errorf("POST %q = %d, want 400", body, status)
		}
	}
	if status, _ := do(t, "GET", jobs+"/nobody", ""); status != http.StatusNotFound {
		t.Errorf("GET of an unknown job = %d, want 404", status)
	}
	if status, _ := do(t, "DELETE", jobs+"/nobody", ""); status != http.StatusNotFound {
		t.Errorf("DELETE of an unknown job = %d, want 404", status)
	}

	if status, view := do(t, "POST", jobs, `{"id": "good", "command": ["/bin/sh", "-c", "echo hello"]}`); status != http.StatusAccepted {
		t.Fatalf("POST = %d, %v, want 202", status, view)
	}
	view := until(t, jobs+"/good", "settled")
	if rec, _ := view["record"].(map[string]any); rec["outcome"] != "completed" || rec["exitCode"] != 0.0 {
		t.Errorf("record of the good job = %v, want completed", view["record"])
	}

	do(t, "POST", jobs, `{"id": "long", "command": ["/bin/sh", "-c", "sleep 600"]}`)
	until(t, jobs+"/long", "running")
	if status, view := do(t, "POST", jobs, `{"id": "long", "command": ["true"]}`); status != http.StatusConflict {
		t.Errorf("POST of a job that is known = %d, %v, want 409", status, view)
	}
	if _, view := do(t, "DELETE", jobs+"/long", ""); view["cancel"] != "requested" {
		t.Errorf("DELETE of a running job = %v, want requested", view)
	}
	view = until(t, jobs+"/long", "settled")
	if rec, _ := view["record"].(map[string]any); rec["reason"] != "operator-cancel" {
		t.Errorf("record of the cancelled job = %v, want operator-cancel", view["record"])
	}

	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
