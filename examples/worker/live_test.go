package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgehero/dispatch/internal/lab"
	"github.com/edgehero/dispatch/livejobs"
	"github.com/edgehero/dispatch/livejobs/redisrow"
)

// typeLive types the live command and returns what it says.
func typeLive(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	code = p.main(context.Background(), append([]string{"live"}, args...))
	return code, out.String(), errs.String()
}

func TestLive(t *testing.T) {
	server := lab.Redis(t)
	code, stdout, stderr := typeLive("-redis", server.Addr)
	if want := "no host publishes under dispatch:{fleet}:\n"; code != exitOK || stdout != want || stderr != "" {
		t.Errorf("live of nobody = %d, %q, %q, want %d and %q", code, stdout, stderr, exitOK, want)
	}

	option, err := redisrow.ClientOption("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	jobs := &livejobs.Registry{}
	jobs.Add(livejobs.Running{ID: "job-1", Project: "alpha", Mem: 512, CPU: 50, At: time.Now().Add(-time.Minute)})
	jobs.Add(livejobs.Running{ID: "job-2", At: time.Now(), Orphan: true})
	p, err := redisrow.New(redisrow.Config{
		Server: option, Host: "host-a", Version: "v1.4.0", Jobs: jobs, Slots: func() (int, int) { return 4, 2 },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var publisher sync.WaitGroup
	publisher.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Errorf("the publisher's Run = %v, want nil", err)
		}
	})
	defer publisher.Wait()
	defer stop()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if code, stdout, stderr = typeLive("-redis", server.Addr); strings.Contains(stdout, "host-a") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("live = %d, %q, %q, want host-a within a minute", code, stdout, stderr)
		}
	}
	for _, want := range []string{"host-a  live ", " 2/4 ", " v1.4.0 ", " job-1 ", " alpha ", " 512m/0.5 ", " job-2 (orphan) "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("live prints no %q:\n%s", want, stdout)
		}
	}
	code, stdout, stderr = typeLive("-redis", "redis://"+server.Addr+"/0", "-json")
	checkJSON(t, "live", stdout, "jobs")
	var got struct {
		Hosts []struct {
			Host     string
			Stale    bool
			Jobs     []any
			JobsMore *int
		}
		Skipped []any
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("live -json = %d, %q, %q, want JSON: %v", code, stdout, stderr, err)
	}
	if len(got.Hosts) != 1 || len(got.Hosts[0].Jobs) != 2 || got.Hosts[0].Stale || got.Hosts[0].Host != "host-a" || got.Hosts[0].JobsMore == nil || got.Skipped == nil {
		t.Errorf("live -json prints %s, want one live host with two jobs", stdout)
	}
}

func TestLiveSaysWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "flag -redis is missing"},
		{"-redis 127.0.0.1:1", exitUnavailable, "no Redis server answers at 127.0.0.1:1"},
		{"-redis redis://me:hunter2@host:port", exitUsage, "want redis://user:password@host:port/number"},
		{"-redis 127.0.0.1:1 more", exitUsage, "got 1 arguments"},
	} {
		code, stdout, stderr := typeLive(strings.Fields(tt.args)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("live %s = %d, %q, %q, want %d and %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

func TestLiveOfAWrongPrefix(t *testing.T) {
	code, _, stderr := typeLive("-redis", lab.RedisAddr(t), "-prefix", "fleet:")
	if code != exitUsage || !strings.Contains(stderr, "Prefix: has no hash tag") {
		t.Errorf("live with a prefix without a hash tag = %d, %q, want %d and the reason", code, stderr, exitUsage)
	}
}

// TestLiveOfHostileRows has a row that must not reach the terminal as it is.
func TestLiveOfHostileRows(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: &out}
	now := time.UnixMilli(1_700_000_000_000)
	err := p.printLive(redisrow.Snapshot{
		At: now,
		Hosts: []redisrow.Host{
			{Name: "gone", At: now.Add(-time.Hour), Stale: true},
			{Name: "odd", At: now.Add(time.Hour), Version: "v1", Slots: 1},
		},
		Skipped: []redisrow.Skipped{{Name: "\x1b[31mred\n", Why: "its name is not a host's"}},
		More:    7,
	}, redisrow.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gone  stale  1h0m0s  -", "more that can't be read", "[31mred", "7 more hosts"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printLive prints no %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "red\n") {
		t.Errorf("printLive passes control characters on: %q", out.String())
	}
}
