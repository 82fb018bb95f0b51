package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/test/double/openaicompat"
)

// pickupRow is how long runs wait for a dispatcher: the time from the request that creates a
// run to its first call of the model.
type pickupRow struct {
	dispatchers int
	// idle has one run at a time; saturated has two runs for each slot.
	idle, saturated samples
	// repeated is how many calls were made beyond one for each run.
	repeated int
}

// pickupWorkflow has one call of the model, whose prompt has the run's id.
const pickupWorkflow = `{"id":"bench-pickup","name":"bench","version":"1","nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":{"prompt":"Say a word about {{id}}."},` +
	`"name":"n","position":{"x":0,"y":0},"inputs":{}}],"edges":[],"triggers":[],"variables":[{"name":"id","type":"string","required":true}],"metadata":{},"settings":{}}`

// pickupDouble is a model that records the first call of each run.
type pickupDouble struct {
	*openaicompat.Server
	waiting  sync.Map // id of a call → *pickupCall
	ids      atomic.Int64
	repeated atomic.Int64
}

// pickupCall is a call that a run is to make.
type pickupCall struct {
	calls atomic.Int64
	// began has the time of the first call; ended is signaled after each answer.
	began chan time.Time
	ended chan struct{}
}

func newPickupDouble() *pickupDouble {
	d := &pickupDouble{}
	d.Server = openaicompat.New(openaicompat.Options{
		Key: doubleKey,
		Answer: func(rec openaicompat.Recorded) openaicompat.Reply {
			if c := d.find(rec.Body); c != nil {
				if c.calls.Add(1) == 1 {
					c.began <- time.Now()
				} else {
					d.repeated.Add(1)
				}
			}
			return openaicompat.Reply{Wait: modelTakes, Pieces: []string{"Done."}}
		},
		Watch: func(w openaicompat.Watched) {
			if c := d.find(w.Body); c != nil {
				select {
				case c.ended <- struct{}{}:
				default: // an answer was signaled before
				}
			}
		},
	})
	return d
}

func (d *pickupDouble) find(body []byte) *pickupCall {
	c, ok := d.waiting.Load(string(callID.Find(body)))
	if !ok {
		return nil
	}
	return c.(*pickupCall) //nolint:forcetypeassert // once stores no other
}

// once creates a run, waits for the answer to its call, and returns how long the call took to
// begin.
func (d *pickupDouble) once(ctx context.Context, c *client) (time.Duration, error) {
	id := fmt.Sprintf("call-%09d", d.ids.Add(1))
	call := &pickupCall{began: make(chan time.Time, 1), ended: make(chan struct{}, 1)}
	d.waiting.Store(id, call)
	asked := time.Now()
	if _, err := c.do(ctx, http.MethodPost, "/v1/runs", fmt.Appendf(nil, `{"workflowId":"bench-pickup","inputs":{"id":%q}}`, id)); err != nil {
		return 0, err
	}
	var began time.Time
	select {
	case began = <-call.began:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case <-call.ended:
		return began.Sub(asked), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// pickupTimeout limits the measurement of one row.
const pickupTimeout = 2 * time.Minute

// pickup measures one row.
func pickup(ctx context.Context, o options, dispatchers int) (row pickupRow, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pickupTimeout+2*o.seconds, errors.New("a run was not picked up in time"))
	defer cancel()
	d := newPickupDouble()
	defer d.Close()
	h, err := startSpread(ctx, o, dispatchers, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey},
		"--provider", "double="+d.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--max-runs", strconv.Itoa(slots))
	if err != nil {
		return row, err
	}
	defer h.stop()
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", []byte(pickupWorkflow)); err != nil {
		return row, err
	}
	row.dispatchers = dispatchers
	if row.idle, err = d.collect(ctx, h.client, 1, 4*o.seconds); err != nil {
		return row, err
	}
	row.saturated, err = d.collect(ctx, h.client, 2*slots*dispatchers, 2*o.seconds)
	row.repeated = int(d.repeated.Load())
	return row, err
}

// collect has clients create runs for a while, each one run at a time. The first fifth is a
// warm-up.
func (d *pickupDouble) collect(ctx context.Context, c *client, clients int, during time.Duration) (samples, error) {
	var (
		mu  sync.Mutex // guards all
		all samples
	)
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range clients {
		g.Go(func() error {
			for time.Since(began) < during {
				warm := time.Since(began) > during/5
				took, err := d.once(ctx, c)
				if err != nil {
					return err
				}
				if warm {
					mu.Lock()
					all = append(all, took)
					mu.Unlock()
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return all.sorted(), err
}

// pickups measures all rows.
func pickups(ctx context.Context, o options) (rows []pickupRow, err error) {
	for _, n := range []int{1, 2, 4} {
		row, err := pickup(ctx, o, n)
		if err != nil {
			return nil, fmt.Errorf("%d dispatchers: %w", n, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// figures are the rows of the report.
func (r pickupRow) figures() []figure {
	by := fmt.Sprintf("%d dispatchers", r.dispatchers)
	if r.dispatchers == 1 {
		by = "1 dispatcher"
	}
	latency := func(what, ceiling string, s samples) figure {
		return figure{
			what: what + ", " + by + ", p50 and p99", basis: absolute, ceiling: ceiling,
			measured: fmt.Sprintf("%s, %s of %d runs", short(s.percentile(50)), short(s.percentile(99)), len(s)),
		}
	}
	return []figure{
		latency("from the request to the first call of the model, idle", "", r.idle),
		latency("from the request to the first call of the model, two runs for each slot", "one call of the model: "+short(modelTakes), r.saturated),
		{
			what: "calls of the model beyond one per run, " + by, basis: count, measured: strconv.Itoa(r.repeated),
			target: "0", met: r.repeated == 0,
		},
	}
}
