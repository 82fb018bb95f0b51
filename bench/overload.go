package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Targets.
const (
	goodputTarget = 0.8
	memoryTarget  = 256 // MB
)

const (
	// patience is how long a client waits for its run to complete, from its due time. A later
	// result is useless.
	patience = 2 * time.Second
	// overfold is the offered load as a multiple of the host's capacity.
	overfold = 3
	// leastOverload is the minimum duration of an overload: a host that queues everything looks
	// good while its queue fills.
	leastOverload = 6 * time.Second
	// overloads is the number of overloads.
	overloads = 3
)

// overloadRow is the result of offering three times the host's capacity.
type overloadRow struct {
	turns []turn
	// late are accepted runs that completed after their client had given up, or after the overload.
	// refused got 429 or 503.
	taken, late, refused int
	// refusedAtPeak counts 429 and 503 answers while no more than the capacity was offered.
	refusedAtPeak int64
	// took is the time of accepted runs, rejected that of rejections, both from the due time; other is
	// the time of concurrent reads and cancels.
	took, rejected, other samples
	// failed is how many of these reads and cancels got 429 or 503.
	failed int
	// atPeak and over are the shares of the machine's CPU, at capacity and under overload.
	atPeak, over []shares
	// largest is the service with the most own memory, and its size.
	largest string
	mb      float64
	// killed is the number of services killed for their memory; -1 without a limit.
	killed int
}

// turn is one overload.
type turn struct {
	// peak is the rate of completed runs before and after, offered the offered rate, good the rate
	// of useful runs.
	peak, offered, good float64
}

// shares are the host's and the load client's shares of the machine's CPU; the rest is other
// processes'.
type shares struct{ host, client float64 }

// attempt is a client's request for a run.
type attempt struct {
	due     time.Time
	id      string // empty: refused
	refused time.Duration
}

// overloadClients are a host in several processes and its load clients.
type overloadClients struct {
	*spreadHost
	workflow string
	body     []byte
	// ended is the id of a run that has ended.
	ended string
}

// overload alternates between measuring the peak rate of a host and offering three times that rate.
// The machine's other load changes, so each overload is compared with the peaks before and after it.
// Clients start independently, do not retry, and give up after patience. The peak is measured on a
// second host without a start limit, because rejections would leave the first one idle.
func overload(ctx context.Context, o options) (row overloadRow, err error) {
	h, err := startSpread(ctx, o, 2, nil)
	if err != nil {
		return row, err
	}
	defer h.stop()
	all, err := startSpread(ctx, o, 2, nil, "--start-delay", "0")
	if err != nil {
		return row, err
	}
	defer all.stop()
	c, free := &overloadClients{spreadHost: h}, &overloadClients{spreadHost: all}
	if err := errors.Join(c.settle(ctx), free.settle(ctx)); err != nil {
		return row, err
	}
	stop := row.watchMemory(h)
	defer func() { err = errors.Join(err, stop()) }()
	d := max(leastOverload, 2*o.seconds)
	peak, err := free.peak(ctx, d/2, &row)
	if err != nil {
		return row, err
	}
	for range overloads {
		before := peak
		good, err := c.overloadOnce(ctx, overfold*before, d, &row)
		if err != nil {
			return row, err
		}
		if peak, err = free.peak(ctx, d/2, &row); err != nil {
			return row, err
		}
		row.turns = append(row.turns, turn{peak: (before + peak) / 2, offered: overfold * before, good: good})
	}
	row.took.sorted()
	row.rejected.sorted()
	row.other.sorted()
	row.killed, err = h.cage.killed()
	return row, err
}

// settle connects to the gateway and creates a run that has ended.
func (c *overloadClients) settle(ctx context.Context) error {
	if err := c.direct(); err != nil {
		return err
	}
	id, doc := chain(1)
	c.workflow, c.body = id, fmt.Appendf(nil, `{"workflowId":%q}`, id)
	if _, err := c.client.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
		return err
	}
	done, err := c.create(ctx, id, 1)
	if err != nil {
		return err
	}
	c.ended = done[0]
	_, err = c.completed(ctx, done)
	return err
}

// peak is the rate of clients that each wait for their run: as many as saturate the host.
func (c *overloadClients) peak(ctx context.Context, d time.Duration, row *overloadRow) (float64, error) {
	share, err := c.watched()
	if err != nil {
		return 0, err
	}
	before := c.client.rejected.Load()
	best, err := load(ctx, 128, d, func(ctx context.Context) error { return c.client.run(ctx, c.body) })
	if err != nil {
		return 0, err
	}
	at, err := share()
	row.atPeak, row.refusedAtPeak = append(row.atPeak, at), row.refusedAtPeak+c.client.rejected.Load()-before
	return best.PerSec, err
}

// overloadOnce offers this rate for a while, and returns how many runs were useful.
func (c *overloadClients) overloadOnce(ctx context.Context, perSec float64, d time.Duration, row *overloadRow) (float64, error) {
	others := make(chan error, 1)
	octx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		took, failed, err := c.others(octx, c.ended)
		row.other, row.failed = append(row.other, took...), row.failed+failed
		others <- err
	}()
	share, err := c.watched()
	if err != nil {
		return 0, err
	}
	ended := time.Now().Add(d)
	tried, err := c.offer(ctx, c.body, perSec, d)
	if err != nil {
		return 0, err
	}
	at, err := share()
	if err != nil {
		return 0, err
	}
	row.over = append(row.over, at)
	stop()
	if err := <-others; err != nil {
		return 0, err
	}
	good, err := row.count(ctx, c.spreadHost, tried, ended)
	return float64(good) / d.Seconds(), err
}

// watched starts a CPU measurement; share returns the result since then.
func (h *spreadHost) watched() (share func() (shares, error), err error) {
	began, client := time.Now(), processCPU()
	host, err := h.cpu()
	return func() (shares, error) {
		now, err := h.cpu()
		whole := time.Since(began).Seconds() * float64(runtime.NumCPU())
		return shares{host: (now - host).Seconds() / whole, client: (processCPU() - client).Seconds() / whole}, err
	}, err
}

// direct connects the client to the gateway itself: the launcher's proxy would use CPU for each
// request, also for rejected ones.
func (h *spreadHost) direct() error {
	b, err := os.ReadFile(filepath.Join(h.dir, "data", "gateway0.ready"))
	if err != nil {
		return err
	}
	var ready struct {
		HTTP string `json:"http"`
	}
	h.client = newClient("", 1024)
	err = json.Unmarshal(b, &ready)
	h.client.base = ready.HTTP
	return err
}

// offer creates runs at this rate, independent of the answers.
func (h *spreadHost) offer(ctx context.Context, body []byte, perSec float64, d time.Duration) ([]attempt, error) {
	var (
		mu  sync.Mutex
		all []attempt
	)
	_, _, err := drive(ctx, time.Duration(float64(time.Second)/perSec), int(d.Seconds()*perSec), func(due time.Time) error {
		a := attempt{due: due}
		id, err := runIDIn(h.client.once(ctx, http.MethodPost, "/v1/runs", body))
		a.id = id
		if _, rejected := errors.AsType[*refusal](err); rejected {
			a.refused = time.Since(due)
		} else if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return nil
	})
	return all, err
}

// others reads and cancels an ended run repeatedly until ctx ends: requests that must be answered
// during overload.
func (h *spreadHost) others(ctx context.Context, id string) (took samples, failed int, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return took, failed, nil
		case <-tick.C:
		}
		began := time.Now()
		if i%2 == 0 {
			_, err = h.client.once(ctx, http.MethodGet, "/v1/runs/"+id, nil)
		} else {
			_, err = h.client.once(ctx, http.MethodPost, "/v1/runs/"+id+"/cancel", nil)
		}
		if _, rejected := errors.AsType[*refusal](err); rejected {
			failed++
		} else if ctx.Err() == nil && err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(began))
	}
}

// count classifies each attempt, and returns how many were useful.
func (row *overloadRow) count(ctx context.Context, h *spreadHost, tried []attempt, ended time.Time) (good int, err error) {
	var (
		ids []string
		due []time.Time
	)
	for _, a := range tried {
		if a.id == "" {
			row.refused++
			row.rejected = append(row.rejected, a.refused)
			continue
		}
		ids, due = append(ids, a.id), append(due, a.due)
	}
	all, err := h.completed(ctx, ids)
	if err != nil {
		return 0, err
	}
	row.taken += len(ids)
	for i, run := range all {
		at := run.Events[len(run.Events)-1].Timestamp
		row.took = append(row.took, at.Sub(due[i]))
		if useful(due[i], at, ended) {
			good++
		}
	}
	row.late += len(ids) - good
	return good, nil
}

// useful reports whether a run completed while its client still waited, and before the overload
// ended.
func useful(due, at, ended time.Time) bool { return at.Sub(due) <= patience && !at.After(ended) }

// memoryEvery is the interval of memory checks.
const memoryEvery = 100 * time.Millisecond

// watchMemory finds the service with the most memory until stopped.
func (row *overloadRow) watchMemory(h *spreadHost) (stop func() error) {
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			err := row.memory(h)
			select {
			case <-tick.C:
			case <-done:
				result <- err
				return
			}
		}
	}()
	return func() error { close(done); return <-result }
}

func (row *overloadRow) memory(h *spreadHost) error {
	pids, err := h.pids()
	for name, pid := range pids {
		p, errProc := procOf(pid)
		err = errors.Join(err, errProc)
		if p.ownMB > row.mb && !strings.HasPrefix(name, "nats") {
			row.largest, row.mb = strings.TrimRight(name, "0123456789"), p.ownMB
		}
	}
	return err
}

// mean is the mean of all turns.
func (row overloadRow) mean() (m turn) {
	n := float64(max(len(row.turns), 1))
	for _, t := range row.turns {
		m.peak, m.offered, m.good = m.peak+t.peak/n, m.offered+t.offered/n, m.good+t.good/n
	}
	return m
}

func meanShare(all []shares) (m shares) {
	n := float64(max(len(all), 1))
	for _, s := range all {
		m.host, m.client = m.host+s.host/n, m.client+s.client/n
	}
	return m
}

func (row overloadRow) figures() []figure {
	m, at, over := row.mean(), meanShare(row.atPeak), meanShare(row.over)
	good := m.good / m.peak
	var each []string
	for _, t := range row.turns {
		each = append(each, fmt.Sprintf("%.0f %%", 100*t.good/t.peak))
	}
	return []figure{
		{
			what:     fmt.Sprintf("no-op runs completed within %s of their due time with %.0f offered a second, relative to the peak", patience, m.offered),
			basis:    ratio,
			measured: fmt.Sprintf("%.0f %%, %.0f/s (%s)", 100*good, m.good, strings.Join(each, ", ")),
			target:   "≥ 80 %",
			met:      good >= goodputTarget,
			ceiling: fmt.Sprintf("%.0f/s, %d rejected; under overload %d accepted, of which %d too late, %d rejected",
				m.peak, row.refusedAtPeak, row.taken, row.late, row.refused),
		},
		{
			what:     "… from the due time to the end of accepted runs, p50",
			basis:    absolute,
			measured: short(row.took.percentile(50)),
			ceiling:  fmt.Sprintf("p99 %s", short(row.took.percentile(99))),
		},
		{
			what:     "… from the due time to a rejection, p50",
			basis:    absolute,
			measured: short(row.rejected.percentile(50)),
			ceiling:  fmt.Sprintf("p99 %s", short(row.rejected.percentile(99))),
		},
		{
			what:     "… reading and cancelling a run under overload, p50",
			basis:    absolute,
			measured: short(row.other.percentile(50)),
			ceiling:  fmt.Sprintf("p99 %s; %d of %d rejected", short(row.other.percentile(99)), row.failed, len(row.other)),
		},
		{
			what:     "… the host's share of the machine's CPU",
			basis:    ratio,
			measured: fmt.Sprintf("%.0f %%, the load client %.0f %%", 100*over.host, 100*over.client),
			ceiling:  fmt.Sprintf("%.0f %%, the load client %.0f %%, at the peak", 100*at.host, 100*at.client),
		},
		{
			what:     "… runs in time per second of the host's CPU, relative to the peak",
			basis:    ratio,
			measured: fmt.Sprintf("%.0f %%", 100*good*at.host/over.host),
		},
		row.killedFigure(),
		{
			what:     "… peak of a service's own memory",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f MB, the %s", row.mb, row.largest),
			target:   fmt.Sprintf("≤ %d MB", memoryTarget),
			met:      row.mb <= memoryTarget,
		},
	}
}

func (row overloadRow) killedFigure() figure {
	measured := strconv.Itoa(row.killed)
	if row.killed < 0 {
		measured = "not limited on this machine"
	}
	return figure{
		what:     fmt.Sprintf("… services that the kernel killed above %d MB, page cache included", memoryTarget),
		basis:    count,
		measured: measured,
		target:   "0",
		met:      row.killed == 0,
	}
}
