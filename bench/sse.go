package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sseRow is the time of an event from its append to its subscribers.
type sseRow struct {
	subscribers int
	p50, p99    time.Duration
	events      int
}

// ticker is a workflow with slow events, so that each can be measured: a chain of short delays.
func tickerWorkflow(n int) (id string, doc []byte) {
	var nodes, edges []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%02d","typeId":"core.delay","name":"n","position":{"x":0,"y":0},"config":{"ms":150},"inputs":{}}`, i))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%02d","targetNodeId":"n%02d"}`, i, i-1, i))
		}
	}
	return "bench-ticker", []byte(fmt.Sprintf(`{"id":"bench-ticker","name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		strings.Join(nodes, ","), strings.Join(edges, ",")))
}

// subscribers measures the time from append to client. An event carries its timestamp; both clocks
// are this machine's.
func subscribers(ctx context.Context, r *report) error {
	h, err := startHost(ctx, r.options.bin, r.options.dir)
	if err != nil {
		return err
	}
	defer h.stop()
	id, doc := tickerWorkflow(12)
	if _, err := newClient(h.ready.HTTP, 1).do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
		return err
	}
	counts := []int{1, 100, 500, 1000, 5000}
	if r.options.quick {
		counts = []int{1, 100}
	}
	for _, n := range counts {
		row, err := fanOut(ctx, h.ready.HTTP, id, n)
		if err != nil {
			return err
		}
		r.sse = append(r.sse, row)
	}
	return nil
}

func fanOut(ctx context.Context, base, workflow string, n int) (sseRow, error) {
	c := newClient(base, n)
	defer c.http.CloseIdleConnections()
	runID, err := runIDIn(c.do(ctx, http.MethodPost, "/v1/runs", []byte(`{"workflowId":"`+workflow+`"}`)))
	if err != nil {
		return sseRow{}, err
	}
	var (
		mu  sync.Mutex
		all samples
		bad error
		wg  sync.WaitGroup
	)
	for range n {
		wg.Go(func() {
			mine, err := c.listen(ctx, runID)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if err != nil {
				bad = err
			}
		})
	}
	wg.Wait()
	if bad != nil || len(all) == 0 {
		return sseRow{}, fmt.Errorf("%d subscribers got %d live events: %w", n, len(all), bad)
	}
	all.sorted()
	return sseRow{subscribers: n, p50: all.percentile(50), p99: all.percentile(99), events: len(all)}, nil
}

// listen follows a run and measures the events after its subscription.
func (c *client) listen(ctx context.Context, runID string) ([]time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/runs/"+runID+"/events?streamMode=debug", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+devKey)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	subscribed := time.Now()
	var out []time.Duration
	s := bufio.NewScanner(res.Body)
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Timestamp time.Time `json:"timestamp"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return out, err
		}
		if e.Timestamp.After(subscribed) {
			out = append(out, time.Since(e.Timestamp))
		}
	}
	return out, s.Err()
}
