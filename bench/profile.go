package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// share is the part of the host's CPU time with an area on the stack.
type share struct {
	area    string
	percent string
}

// areas are the profiled areas. A function anywhere on the stack counts, so the shares overlap and
// do not add up to 100 %.
var areas = []struct{ name, focus string }{
	{"gRPC between the services, with its transport", `google.golang.org/grpc`},
	{"HTTP and the translation to gRPC", `net/http\.|grpc-gateway`},
	{"SQLite: the read model's writes and reads", `modernc.org`},
	{"the embedded NATS server", `nats-server`},
	{"the NATS client", `nats.go`},
	{"the dispatcher's own code", `services/dispatcher`},
	{"the gateway's own code and its callees", `services/gateway`},
	{"allocation and garbage collection", `runtime\.mallocgc|runtime\.gcBgMarkWorker|runtime\.gcAssist`},
	{"JSON", `encoding/json|strictjson`},
}

var total = regexp.MustCompile(`Showing nodes accounting for \S+, ([0-9.]+%) of`)

// profile loads a host with no-op runs from 64 clients and fetches its CPU profile.
func profile(ctx context.Context, r *report) error {
	h, err := startHost(ctx, r.options.bin, r.options.dir, "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer h.stop()
	if err := deploy(ctx, newClient(h.ready.HTTP, 1)); err != nil {
		return err
	}
	file := filepath.Join(h.dir, "cpu.prof")
	fetched := make(chan error, 1)
	go func() { fetched <- fetch(ctx, h.ready.Metrics, file, r.options.seconds) }()
	if _, err := runsOf(ctx, h.ready.HTTP, 1, 64, r.options.seconds+time.Second); err != nil {
		return err
	}
	if err := <-fetched; err != nil {
		return err
	}
	for _, a := range areas {
		out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-focus", a.focus, file).Output()
		if err != nil {
			return fmt.Errorf("read profile: %w", err)
		}
		if m := total.FindSubmatch(out); m != nil {
			r.shares = append(r.shares, share{a.name, string(m[1])})
		}
	}
	return nil
}

// fetch saves a profile of this duration.
func fetch(ctx context.Context, metrics, file string, d time.Duration) error {
	b, err := pprof(ctx, metrics, fmt.Sprintf("profile?seconds=%d", int(d.Seconds())))
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// pprof reads a profile from the metrics port.
func pprof(ctx context.Context, metrics, what string) ([]byte, error) {
	return operator(ctx, metrics, "/debug/pprof/"+what)
}

// operator reads a path of the metrics port.
func operator(ctx context.Context, metrics, path string) ([]byte, error) {
	at, err := url.Parse(metrics)
	if err != nil {
		return nil, err
	}
	at, err = at.Parse(path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", at, res.Status)
	}
	return io.ReadAll(res.Body)
}
