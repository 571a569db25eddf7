package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edgehero/dispatch/worker"
)

func TestServedLines(t *testing.T) {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.FixedZone("", 3600))
	for _, tt := range []struct {
		told        served
		plain, json string
	}{
		{
			served{Event: "serving", At: at.UTC(), Queue: "dispatch-data", Slots: 2},
			"serving dispatch-data with 2 slots",
			`{"event":"serving","at":"2026-05-01T09:00:00Z","queue":"dispatch-data","slots":2}`,
		},
		{
			servedOf(worker.Event{Kind: worker.JobStarted, Job: "a", Attempt: 1, At: at}),
			"started job=a attempt=1",
			`{"event":"started","at":"2026-05-01T09:00:00Z","job":"a","attempt":1}`,
		},
		{
			servedOf(worker.Event{Kind: worker.JobRetried, Job: "a\x1b[7m\n", Attempt: 2, At: at, Due: at.Add(time.Minute),
				Outcome: worker.Outcome{Class: worker.Infra, Reason: "container-infra-exit"}}),
			"retried job=a\uFFFD[7m\uFFFD attempt=2 outcome=infra reason=container-infra-exit",
			`{"event":"retried","at":"2026-05-01T09:00:00Z","job":"a\u001b[7m\n","attempt":2,"outcome":"infra","reason":"container-infra-exit","due":"2026-05-01T09:01:00Z"}`,
		},
	} {
		var plain, lines bytes.Buffer
		(&program{stdout: &plain}).tell(tt.told, false)
		(&program{stdout: &lines}).tell(tt.told, true)
		if diff := cmp.Diff(tt.plain+"\n", plain.String()); diff != "" {
			t.Errorf("the plain line (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(tt.json+"\n", lines.String()); diff != "" {
			t.Errorf("the JSON line (-want +got):\n%s", diff)
		}
	}
}

// Every line that serve -json prints is an object with documented members.
func TestServeJSON(t *testing.T) {
	data := t.TempDir()
	if code, _, errs := typed(t, `{"id": "a", "command": ["true"]}`, "enqueue", "-data", data, "-"); code != exitOK {
		t.Fatalf("enqueue: %s", errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, out := io.Pipe()
	p := &program{stdout: out, stderr: io.Discard, getenv: func(string) string { return "" }, stopNow: make(chan struct{})}
	go func() {
		if code := p.main(ctx, []string{"serve", "-json", "-allow-process", "-runtime", "none", "-data", data}); code != exitOK {
			t.Errorf("serve -json = %d", code)
		}
		out.Close()
	}()
	documented := documentedMembers(t, "serve")
	var events []string
	for text := bufio.NewScanner(lines); text.Scan(); {
		var members map[string]any
		if err := json.Unmarshal(text.Bytes(), &members); err != nil {
			t.Errorf("serve -json prints %q: %v", text.Text(), err)
		}
		for name := range members {
			if !slices.Contains(documented, name) {
				t.Errorf("serve -json prints the member %q, which docs/operating.md does not name", name)
			}
		}
		event, _ := members["event"].(string)
		events = append(events, event)
		if event == string(worker.JobEnded) {
			stop()
		}
	}
	if diff := cmp.Diff([]string{"serving", "picked", "started", "ended"}, events); diff != "" {
		t.Errorf("events of serve -json (-want +got):\n%s", diff)
	}
}
