package worker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/edgehero/dispatch/worker"
)

func TestJobCheck(t *testing.T) {
	tests := []struct {
		name string
		job  worker.Job
		want string // in the error, "" for none
	}{
		{"plain", worker.Job{ID: "job", Name: "test", Host: "host-1", Data: json.RawMessage(`{"a": 1}`)}, ""},
		{"the longest id", worker.Job{ID: strings.Repeat("a", 1024)}, ""},
		{"an id of any script", worker.Job{ID: "aufträge:日本"}, ""},
		{"no id", worker.Job{}, "0 bytes"},
		{"a longer id", worker.Job{ID: strings.Repeat("a", 1025)}, "1025 bytes"},
		{"an id that is not text", worker.Job{ID: "a\xffb"}, "UTF-8"},
		{"a name that is not text", worker.Job{ID: "job", Name: "\xc3"}, "UTF-8"},
		{"a host that is not text", worker.Job{ID: "job", Host: "\xed\xa0\x80"}, "UTF-8"},
		{"a negative delay", worker.Job{ID: "job", Delay: -1}, "delay"},
		{"data that is not JSON", worker.Job{ID: "job", Data: json.RawMessage(`{`)}, "not JSON"},
	}
	for _, tt := range tests {
		err := tt.job.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Check of %s = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}
