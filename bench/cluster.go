package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/test/double/openaicompat"
)

// clusterFigures are the figures of a host in several processes: a gateway, an acceptor, an
// eventlog, a redactor and some dispatchers, on one NATS server that syncs every write.
type clusterFigures struct {
	scale    []scaleRow
	cost     []costRow
	recovery samples // of runs whose dispatcher was killed
	kills    int
	pickup   []pickupRow
	overload overloadRow
	load     string
}

// scaleRow is the call rate of this many dispatchers with a slow model.
type scaleRow struct {
	dispatchers int
	perSec      float64
	// busy is the share of the machine's CPU used by all processes except the load client.
	busy float64
}

// costRow is the cost of a run when the log already holds this many.
type costRow struct {
	held int
	cpu  time.Duration // of all processes, per run
}

const (
	// slots is the concurrency of a dispatcher, and modelTakes the duration of a call. Together
	// they limit one dispatcher long before the CPU does.
	slots      = 8
	modelTakes = 200 * time.Millisecond
	// memoryLimit is the GOMEMLIMIT of each service, in bytes: the chart sets a million for each
	// MiB of the limit.
	memoryLimit = memoryTarget * 1_000_000
	callers     = 16
)

// spreadHost is a host in several processes.
type spreadHost struct {
	*host
	client *client
	cage   *cage
}

// cages counts the cages, for their names.
var cages atomic.Int64

// startSpread starts a host with this many dispatchers.
func startSpread(ctx context.Context, o options, dispatchers int, env []string, args ...string) (*spreadHost, error) {
	var bins [3]string
	for i, bin := range []string{o.bin, o.spread, o.nats} {
		var err error
		if bins[i], err = filepath.Abs(bin); err != nil {
			return nil, err
		}
		if _, err := os.Stat(bins[i]); err != nil {
			return nil, fmt.Errorf("%w: `make bench ONLY=cluster` builds it", err)
		}
	}
	name := fmt.Sprintf("waybill-bench-%d-%d", os.Getpid(), cages.Add(1))
	c, wrapped := newCage(name), filepath.Join(o.dir, name)
	if err := c.wrap(wrapped, bins[0], memoryLimit, memoryTarget<<20); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	env = append(env, "WAYBILL="+wrapped, "NATS_SERVER="+bins[2], "SPREAD_NATS_NODES=1",
		fmt.Sprintf("SPREAD_COPIES=redactor=1,acceptor=1,eventlog=1,gateway=1,dispatcher=%d", dispatchers))
	h, err := startHostIn(ctx, env, bins[1], o.dir, args...)
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return &spreadHost{h, newClient(h.ready.HTTP, 256), c}, nil
}

func (h *spreadHost) stop() {
	h.client.http.CloseIdleConnections()
	h.host.stop()
	if err := h.cage.remove(); err != nil {
		log.Print(err) // an empty kernel directory remains
	}
}

// pids returns the processes by name.
func (h *spreadHost) pids() (map[string]int, error) {
	files, err := filepath.Glob(filepath.Join(h.dir, "data", "*.pid"))
	out := map[string]int{}
	for _, f := range files {
		b, errRead := os.ReadFile(f) //nolint:gosec // G304: our own directory
		pid, errRead2 := strconv.Atoi(strings.TrimSpace(string(b)))
		err = errors.Join(err, errRead, errRead2)
		out[strings.TrimSuffix(filepath.Base(f), ".pid")] = pid
	}
	return out, err
}

// cpu returns the CPU time of all processes.
func (h *spreadHost) cpu() (sum time.Duration, err error) {
	pids, err := h.pids()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		p, err := procOf(pid)
		if err != nil {
			return 0, err
		}
		sum += p.cpu
	}
	return sum, nil
}

// cluster measures the section.
func cluster(ctx context.Context, r *report) (err error) {
	f := &r.cluster
	f.load = busy()
	switch r.options.only {
	case sectionOverload:
		f.overload, err = overload(ctx, r.options)
		return err
	case sectionCost:
		f.cost, err = costs(ctx, r.options)
		return err
	case sectionPickup:
		f.pickup, err = pickups(ctx, r.options)
		return err
	}
	for _, n := range []int{1, 2, 4} {
		row, err := scale(ctx, r.options, n)
		if err != nil {
			return fmt.Errorf("%d dispatchers: %w", n, err)
		}
		f.scale = append(f.scale, row)
	}
	if f.kills, f.recovery, err = recovery(ctx, r.options); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	if f.pickup, err = pickups(ctx, r.options); err != nil {
		return fmt.Errorf("pickup: %w", err)
	}
	if f.overload, err = overload(ctx, r.options); err != nil {
		return fmt.Errorf("overload: %w", err)
	}
	if f.cost, err = costs(ctx, r.options); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	return nil
}

// slow is a model double with a delay, which records the time of each call.
type slow struct {
	*openaicompat.Server
	mu    sync.Mutex // guards the fields below
	asked samples    // time since began
	began time.Time
}

func newSlow() *slow {
	s := &slow{began: time.Now()}
	s.Server = openaicompat.New(openaicompat.Options{
		Key: doubleKey, Watch: func(openaicompat.Watched) {},
		Answer: func(openaicompat.Recorded) openaicompat.Reply {
			s.mu.Lock()
			s.asked = append(s.asked, time.Since(s.began))
			s.mu.Unlock()
			return openaicompat.Reply{Wait: modelTakes, Pieces: []string{"Done."}}
		},
	})
	return s
}

// start starts a host that calls the double.
func (s *slow) start(ctx context.Context, o options, dispatchers int) (*spreadHost, error) {
	return startSpread(ctx, o, dispatchers, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey},
		"--provider", "double="+s.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--max-runs", strconv.Itoa(slots))
}

// calls returns the number of calls.
func (s *slow) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// rate returns the calls per second while the queue was full: in the middle half.
func (s *slow) rate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.asked).sorted()
	first, last := len(all)/5, len(all)*4/5
	return float64(last-first) / (all[last] - all[first]).Seconds()
}

// callsWorkflow is a workflow of n consecutive model calls.
func callsWorkflow(id string, n int) []byte {
	nodes, edges := make([]string, n), make([]string, 0, n)
	for i := range n {
		nodes[i] = fmt.Sprintf(`{"id":"n%02d","typeId":"core.ai.callPrompt","config":{"prompt":"Say a word."},"name":"n","position":{"x":0,"y":0},"inputs":{}}`, i)
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%02d","targetNodeId":"n%02d"}`, i, i-1, i))
		}
	}
	return fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// create starts this many runs of a workflow and returns their ids.
func (h *spreadHost) create(ctx context.Context, workflow string, n int) ([]string, error) {
	ids := make([]string, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(callers)
	for i := range ids {
		g.Go(func() (err error) {
			ids[i], err = runIDIn(h.client.do(ctx, http.MethodPost, "/v1/runs", fmt.Appendf(nil, `{"workflowId":%q}`, workflow)))
			return err
		})
	}
	return ids, g.Wait()
}

// runTimes is a page of a run's log: the times of its events.
type runTimes struct {
	Events []struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
	} `json:"events"`
	IsComplete bool `json:"isComplete"`
}

// completed waits until all runs have ended, and returns their events. A failed run is an error.
func (h *spreadHost) completed(ctx context.Context, ids []string) ([]runTimes, error) {
	out := make([]runTimes, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(callers)
	for i, id := range ids {
		g.Go(func() error {
			for !out[i].IsComplete {
				b, err := h.client.do(ctx, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?lastSequence=%d&timeout=30&limit=1000", id, len(out[i].Events)-1), nil)
				if err != nil {
					return err
				}
				var page runTimes
				if err := json.Unmarshal(b, &page); err != nil {
					return err
				}
				out[i].Events, out[i].IsComplete = append(out[i].Events, page.Events...), page.IsComplete
			}
			if last := out[i].Events[len(out[i].Events)-1]; last.Type != "run.completed" {
				return fmt.Errorf("run %s ended with %s", id, last.Type)
			}
			return nil
		})
	}
	return out, g.Wait()
}

// scale measures the call rate of this many dispatchers under saturation.
func scale(ctx context.Context, o options, dispatchers int) (scaleRow, error) {
	s := newSlow()
	defer s.Close()
	h, err := s.start(ctx, o, dispatchers)
	if err != nil {
		return scaleRow{}, err
	}
	defer h.stop()
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", callsWorkflow("bench-slow", 1)); err != nil {
		return scaleRow{}, err
	}
	perSec := float64(dispatchers*slots) / modelTakes.Seconds()
	before, err := h.cpu()
	if err != nil {
		return scaleRow{}, err
	}
	began := time.Now()
	ids, err := h.create(ctx, "bench-slow", max(10*dispatchers*slots, int(2*o.seconds.Seconds()*perSec)))
	if err != nil {
		return scaleRow{}, err
	}
	if _, err := h.completed(ctx, ids); err != nil {
		return scaleRow{}, err
	}
	took := time.Since(began)
	after, err := h.cpu()
	row := scaleRow{dispatchers: dispatchers, busy: (after - before).Seconds() / took.Seconds() / float64(runtime.NumCPU())}
	row.perSec = s.rate()
	if s.calls() != len(ids) {
		return row, fmt.Errorf("%d runs made %d calls", len(ids), s.calls())
	}
	return row, err
}

// recovery repeatedly kills one of two dispatchers. It returns how long each affected run stood
// still.
func recovery(ctx context.Context, o options) (kills int, stood samples, err error) {
	s := newSlow()
	defer s.Close()
	h, err := s.start(ctx, o, 2)
	if err != nil {
		return 0, nil, err
	}
	defer h.stop()
	const steps = 15
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", callsWorkflow("bench-chain", steps)); err != nil {
		return 0, nil, err
	}
	for kills = 0; kills < o.often(20); kills++ {
		before := s.calls()
		ids, err := h.create(ctx, "bench-chain", slots)
		if err != nil {
			return kills, nil, err
		}
		for s.calls() < before+3*slots { // the calls are in flight
			select {
			case <-ctx.Done():
				return kills, nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		pids, err := h.pids()
		if err != nil {
			return kills, nil, err
		}
		if err := syscall.Kill(pids[fmt.Sprint("dispatcher", kills%2)], syscall.SIGKILL); err != nil {
			return kills, nil, err
		}
		killed := time.Now()
		all, err := h.completed(ctx, ids)
		if err != nil {
			return kills, nil, err
		}
		for _, run := range all {
			for _, e := range run.Events {
				if still := e.Timestamp.Sub(killed); still > 0 {
					if still > 3*modelTakes { // the run was the killed dispatcher's
						stood = append(stood, still)
					}
					break
				}
			}
		}
	}
	return kills, stood.sorted(), nil
}

// costs measures the cost of a run over a growing log.
func costs(ctx context.Context, o options) (rows []costRow, err error) {
	h, err := startSpread(ctx, o, 1, nil)
	if err != nil {
		return nil, err
	}
	defer h.stop()
	id, doc := chain(1)
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
		return nil, err
	}
	const batch = 1000
	held := 0
	for level := 1000; level <= o.often(o.runs); level *= 10 {
		for held < level {
			n := min(level-held, 20*batch)
			ids, err := h.create(ctx, id, n)
			if err != nil {
				return nil, err
			}
			if _, err := h.completed(ctx, ids); err != nil {
				return nil, err
			}
			held += n
		}
		var cpu samples
		for range 3 {
			before, err := h.cpu()
			if err != nil {
				return nil, err
			}
			ids, err := h.create(ctx, id, batch)
			if err != nil {
				return nil, err
			}
			if _, err := h.completed(ctx, ids); err != nil {
				return nil, err
			}
			after, err := h.cpu()
			if err != nil {
				return nil, err
			}
			cpu, held = append(cpu, (after-before)/batch), held+batch
		}
		rows = append(rows, costRow{held: level, cpu: cpu.sorted().percentile(50)})
	}
	return rows, nil
}
