package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// timersRow is the time of due timers after a restart.
type timersRow struct {
	runs  int
	ready time.Duration // from the start of the process
	took  time.Duration // from ready until all runs have ended
	cpu   time.Duration // of the host, until then
}

// timersTarget is the number of timers per second.
const timersTarget = 1000

// timers kills a host with runs that wait for the same time, restarts it after that, and waits
// until all have ended.
func timers(ctx context.Context, o options) (timersRow, error) {
	row := timersRow{runs: o.timers}
	if o.quick {
		row.runs = min(row.runs, 2000)
	}
	h, err := startHost(ctx, o.bin, o.dir, "--start-delay", "0", "--max-queue-wait", "0")
	if err != nil {
		return row, err
	}
	defer h.stop()
	client := newClient(h.ready.HTTP, 256)
	rig := &engineRig{host: h, client: client}
	if err := rig.deploy(ctx, parallelNodes("bench-timer", `"typeId":"core.delay","config":{}`, 1)); err != nil {
		return row, err
	}
	due := time.Now().Add(10*time.Second + time.Duration(row.runs)*2*time.Millisecond)
	g, ctx2 := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for range row.runs {
		g.Go(func() error {
			body := fmt.Appendf(nil, `{"workflowId":"bench-timer","inputs":{"delaySeconds":%.3f}}`, time.Until(due).Seconds())
			_, err := runIDIn(client.do(ctx2, http.MethodPost, "/v1/runs", body))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return row, err
	}
	if time.Now().After(due) {
		return row, fmt.Errorf("%d runs took too long to create: some timers fired before the restart", row.runs)
	}
	time.Sleep(2 * time.Second) // the last of them begin to wait
	if err := h.cmd.Process.Kill(); err != nil {
		return row, err
	}
	_ = h.cmd.Wait()
	client.http.CloseIdleConnections()
	time.Sleep(time.Until(due.Add(3 * time.Second)))
	if err := h.restart(ctx); err != nil {
		return row, err
	}
	row.ready = h.took
	rig.client = newClient(h.ready.HTTP, 8)
	defer rig.client.http.CloseIdleConnections()
	began := time.Now()
	for running := true; running; time.Sleep(20 * time.Millisecond) {
		b, err := rig.client.do(ctx, http.MethodGet, "/v1/runs?limit=1&status=running", nil)
		if err != nil {
			continue // the read model is not ready yet
		}
		running = strings.Contains(string(b), `"runId"`)
		if ctx.Err() != nil {
			return row, ctx.Err()
		}
	}
	row.took = time.Since(began)
	used, err := h.proc()
	row.cpu = used.cpu
	return row, err
}

func (t timersRow) figure() figure {
	rate := float64(t.runs) / t.took.Seconds()
	return figure{
		what:     fmt.Sprintf("timers a second after a restart, %d due at the same time", t.runs),
		basis:    absolute,
		measured: fmt.Sprintf("%.0f", rate),
		target:   fmt.Sprintf("≥ %d", timersTarget),
		met:      rate >= timersTarget,
		ceiling: fmt.Sprintf("all ended %s after the host was ready; ready after %s; %s of CPU per run",
			short(t.took), short(t.ready), short(t.cpu/time.Duration(max(t.runs, 1)))),
	}
}
