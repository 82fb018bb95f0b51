package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// client is the load client: one connection pool with keep-alive, like a well-written API client.
type client struct {
	base string
	// key is the API key.
	key  string
	http *http.Client
	// rejected counts the answers with 429 or 503.
	rejected atomic.Int64
}

func newClient(base string, connections int) *client {
	return &client{base: base, key: devKey, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, MaxConnsPerHost: 0,
	}}}
}

const devKey = "dev-key"

// do makes a request and retries after 429 or 503.
func (c *client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for {
		b, err := c.once(ctx, method, path, body)
		rejected, is := errors.AsType[*refusal](err)
		if !is {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(rejected.after):
		}
	}
}

// refusal is an answer with 429 or 503.
type refusal struct {
	after time.Duration
	error
}

// once makes one request.
func (c *client) once(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode < 300 {
		return b, err
	}
	err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, b)
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		if s, perr := strconv.Atoi(res.Header.Get("Retry-After")); perr == nil {
			c.rejected.Add(1)
			return nil, &refusal{time.Duration(s) * time.Second, err}
		}
	}
	return nil, err
}

// runIDIn returns the id in the answer to a creation.
func runIDIn(b []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var run struct {
		RunID string `json:"runId"`
	}
	return run.RunID, json.Unmarshal(b, &run)
}

// run creates a run and waits, over the public API, until it has completed.
func (c *client) run(ctx context.Context, body []byte) error {
	runID, err := runIDIn(c.do(ctx, http.MethodPost, "/v1/runs", body))
	if err != nil {
		return err
	}
	for last := "-1"; ; {
		b, err := c.do(ctx, http.MethodGet, "/v1/runs/"+runID+"/events/poll?timeout=30&lastSequence="+last, nil)
		if err != nil {
			return err
		}
		var page struct {
			IsComplete   bool        `json:"isComplete"`
			LastEventSeq json.Number `json:"lastEventSeq"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return err
		}
		if page.IsComplete {
			return nil
		}
		last = page.LastEventSeq.String()
	}
}

// result is the result of a load.
type result struct {
	Clients  int
	PerSec   float64
	P50, P99 time.Duration
	// All are all latencies, sorted.
	All samples
}

// load calls do from a number of concurrent clients, for a time, after a warm-up of a fifth of it.
// It takes longer if nothing completes in that time.
func load(ctx context.Context, clients int, d time.Duration, do func(context.Context) error) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	warm := d / 5
	begin := time.Now().Add(warm)
	end := begin.Add(d)
	var (
		mu   sync.Mutex
		all  samples
		done atomic.Int64
		wg   sync.WaitGroup
	)
	for range clients {
		wg.Go(func() {
			var mine []time.Duration
			for (time.Now().Before(end) || done.Load() == 0) && ctx.Err() == nil {
				t := time.Now()
				if err := do(ctx); err != nil {
					cancel(err)
					return
				}
				if t.After(begin) {
					mine = append(mine, time.Since(t))
					done.Add(1)
				}
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	all.sorted()
	counted := d
	if len(all) <= clients { // nearly every client called only once: the time ran over
		counted = time.Since(begin)
	}
	return result{
		Clients: clients,
		PerSec:  float64(done.Load()) / max(d, counted).Seconds(),
		P50:     all.percentile(50),
		P99:     all.percentile(99),
		All:     all,
	}, nil
}
