package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Targets.
const (
	goodputTarget = 0.8
	memoryTarget  = 256.0 // MB
)

const (
	// patience is how long a client waits for its run to complete, from the instant it
	// wanted it; what comes later is of no use to it.
	patience = 2 * time.Second
	// overfold is how many times what the host can do is offered.
	overfold = 3
	// leastOverload is how long an overload lasts at least: a host that takes in what it
	// works off later looks well as long as its queue fills.
	leastOverload = 6 * time.Second
)

// overloadRow is what becomes of three times as much as the host can do.
type overloadRow struct {
	// peak is how many runs a second 64 clients complete who wait for each.
	peak, offered, good float64
	// Of those taken, late are the ones that completed after their client had gone, or after
	// the overload. refused with 429 or 503.
	taken, late, refused int
	// took is how long runs took that were taken, told how long refusals did, both from the instant
	// they were due; other how long reads and cancels did meanwhile.
	took, told, other samples
	// busy is the share of the machine's CPU that the host had, at its peak and under
	// overload: the load client has its part of the rest.
	busyPeak, busyOver float64
	// largest is the service that had the most memory, and how much.
	largest string
	mb      float64
}

// attempt is a run that a client wanted.
type attempt struct {
	due     time.Time
	id      string // empty: refused
	refused time.Duration
}

// overload offers three times as many runs as the host has been seen to do. Clients do
// not wait for each other, do not come again, and each has its patience.
func overload(ctx context.Context, o options) (row overloadRow, err error) {
	h, err := startSpread(ctx, o, 2, nil)
	if err != nil {
		return row, err
	}
	defer h.stop()
	id, doc := chain(1)
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
		return row, err
	}
	body := fmt.Appendf(nil, `{"workflowId":%q}`, id)
	d := max(leastOverload, 2*o.seconds)
	spent, err := h.cpu()
	if err != nil {
		return row, err
	}
	began := time.Now()
	best, err := load(ctx, 64, d/2, func(ctx context.Context) error { return h.client.run(ctx, body) })
	if err != nil {
		return row, err
	}
	if row.busyPeak, spent, err = h.busy(began, spent); err != nil {
		return row, err
	}
	row.peak, row.offered = best.PerSec, overfold*best.PerSec
	done, err := h.create(ctx, id, 1)
	if err != nil {
		return row, err
	}
	if _, err := h.completed(ctx, done); err != nil {
		return row, err
	}
	others := make(chan error, 1)
	octx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		var err error
		row.other, err = h.others(octx, done[0])
		others <- err
	}()
	began = time.Now()
	tried, err := h.offer(ctx, body, row.offered, d)
	ended := began.Add(d)
	if err != nil {
		return row, err
	}
	if row.busyOver, _, err = h.busy(began, spent); err != nil {
		return row, err
	}
	stop()
	if err := <-others; err != nil {
		return row, err
	}
	if err := row.count(ctx, h, tried, ended); err != nil {
		return row, err
	}
	row.good = float64(row.taken-row.late) / d.Seconds()
	err = row.memory(h)
	return row, err
}

// busy is the share of the machine's CPU that the host has spent since.
func (h *spreadHost) busy(since time.Time, spent time.Duration) (share float64, now time.Duration, err error) {
	now, err = h.cpu()
	return (now - spent).Seconds() / time.Since(since).Seconds() / float64(runtime.NumCPU()), now, err
}

// offer asks for so many runs a second, whatever becomes of them.
func (h *spreadHost) offer(ctx context.Context, body []byte, perSec float64, d time.Duration) ([]attempt, error) {
	var (
		mu  sync.Mutex
		all []attempt
	)
	_, _, err := drive(ctx, time.Duration(float64(time.Second)/perSec), int(d.Seconds()*perSec), func(due time.Time) error {
		a := attempt{due: due}
		id, err := runIDIn(h.client.do(ctx, http.MethodPost, "/v1/runs", body))
		switch {
		case err == nil:
			a.id = id
		case refusal(err):
			a.refused = time.Since(due)
		default:
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return nil
	})
	return all, err
}

// refusal reports whether a client was told to come again.
func refusal(err error) bool {
	return strings.Contains(err.Error(), ": 429 ") || strings.Contains(err.Error(), ": 503 ")
}

// others reads and cancels a run that has ended, again and again until ctx ends: what must
// be answered while no run is taken.
func (h *spreadHost) others(ctx context.Context, id string) (took samples, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return took.sorted(), nil
		case <-tick.C:
		}
		began := time.Now()
		if i%2 == 0 {
			_, err = h.client.do(ctx, http.MethodGet, "/v1/runs/"+id, nil)
		} else {
			_, err = h.client.do(ctx, http.MethodPost, "/v1/runs/"+id+"/cancel", nil)
		}
		if ctx.Err() == nil && err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
}

// count says what has become of each.
func (row *overloadRow) count(ctx context.Context, h *spreadHost, tried []attempt, ended time.Time) error {
	var (
		ids []string
		due []time.Time
	)
	for _, a := range tried {
		if a.id == "" {
			row.refused++
			row.told = append(row.told, a.refused)
			continue
		}
		ids, due = append(ids, a.id), append(due, a.due)
	}
	row.told.sorted()
	all, err := h.completed(ctx, ids)
	if err != nil {
		return err
	}
	row.taken = len(ids)
	for i, run := range all {
		at := run.Events[len(run.Events)-1].Timestamp
		row.took = append(row.took, at.Sub(due[i]))
		if !useful(due[i], at, ended) {
			row.late++
		}
	}
	row.took.sorted()
	return nil
}

// useful reports whether a run that completed at an instant was of use: its client still
// waited, and it was done under overload, not once that was over.
func useful(due, at, ended time.Time) bool { return at.Sub(due) <= patience && !at.After(ended) }

// memory finds the service that had the most.
func (row *overloadRow) memory(h *spreadHost) error {
	pids, err := h.pids()
	for _, name := range slices.Sorted(maps.Keys(pids)) {
		p, errProc := procOf(pids[name])
		err = errors.Join(err, errProc)
		if p.peakMB > row.mb && !strings.HasPrefix(name, "nats") {
			row.largest, row.mb = strings.TrimRight(name, "0123456789"), p.peakMB
		}
	}
	return err
}

func (row overloadRow) figures() []figure {
	good := row.good / row.peak
	return []figure{
		{
			fmt.Sprintf("no-op runs completed within %s of their client's wish while %.0f a second are offered, of the most without", patience, row.offered), ratio,
			fmt.Sprintf("%.0f %%, %.0f/s", 100*good, row.good), "≥ 80 %", good >= goodputTarget,
			fmt.Sprintf("%.0f/s; %d taken, of which %d too late, %d told to come again", row.peak, row.taken, row.late, row.refused),
		},
		{
			"… from the wish to the end of runs that were taken, p50", absolute, short(row.took.percentile(50)), "", false,
			fmt.Sprintf("p99 %s", short(row.took.percentile(99))),
		},
		{
			"… until those that were not are told, p50", absolute, short(row.told.percentile(50)), "", false,
			fmt.Sprintf("p99 %s", short(row.told.percentile(99))),
		},
		{
			"… reading a run and cancelling one meanwhile, p50", absolute, short(row.other.percentile(50)), "", false,
			fmt.Sprintf("p99 %s", short(row.other.percentile(99))),
		},
		{
			"… CPU that the host gets, of the machine's", ratio, fmt.Sprintf("%.0f %%", 100*row.busyOver), "", false,
			fmt.Sprintf("%.0f %% at the peak", 100*row.busyPeak),
		},
		{"… most memory that a service had", absolute, fmt.Sprintf("%.0f MB, the %s", row.mb, row.largest), "≤ 256 MB", row.mb <= memoryTarget, ""},
	}
}
