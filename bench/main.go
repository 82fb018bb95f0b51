// Command bench measures the built binary as users do: over HTTP and gRPC, with the load client on
// the same machine. It writes bench/report.md. Each figure has a ceiling from the same run, because
// only ratios are portable between machines. -only measures one section and writes it to standard
// output.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

type options struct {
	bin, out, dir string
	// spread and nats are the additional binaries of a cluster.
	spread, nats string
	// runs is the maximum number of runs in a cluster's log.
	runs   int
	timers int // runs that wait while a host restarts
	// attacks are those of hostile callers, together how long all of them are measured at once, heap and
	// cpu files for profiles of the host.
	attacks, heap, cpu string
	together           time.Duration
	seconds            time.Duration
	quick              bool
	only               section
}

// section is a part of the report that can be measured separately.
type section string

const (
	sectionAll       section = ""
	sectionRuns      section = "runs"
	sectionEnvelopes section = "envelopes"
	sectionModels    section = "models"
	sectionEngine    section = "engine"
	// sectionTimers is the engine's part about timers after a restart.
	sectionTimers section = "timers"
	// sectionCluster is measured only on request.
	sectionCluster section = "cluster"
	// sectionScale is measured only on request, and written as JSON for the simulation.
	sectionScale section = "scale"
	// sectionOverload is the cluster's part about overload.
	sectionOverload section = "overload"
	// sectionCost is the cluster's part that fills the log.
	sectionCost section = "cost"
	// sectionPickup is the cluster's part about the time that runs wait for a dispatcher.
	sectionPickup section = "pickup"
	// sectionCallers is measured only on request: hostile callers.
	sectionCallers section = "callers"
	// sectionSealing is measured only on request: the way to the cold store.
	sectionSealing section = "sealing"
)

// parts are the sections in the order of the report.
var parts = []section{
	sectionRuns, sectionEnvelopes, sectionModels, sectionEngine, sectionTimers,
	sectionCluster, sectionOverload, sectionCost, sectionPickup, sectionCallers, sectionScale, sectionSealing,
}

// has reports whether a section is to be measured.
func (o options) has(s section) bool { return o.only == sectionAll || o.only == s }

// clusters reports whether a host in several processes is measured.
func (o options) clusters() bool {
	return slices.Contains([]section{sectionCluster, sectionOverload, sectionCost, sectionPickup}, o.only)
}

// fsyncs is the number of disk syncs: enough for a p99.
func (o options) fsyncs() int { return min(1000, max(20, int(o.seconds.Seconds()*500))) }

// tries is the number of repetitions of single measurements.
func (o options) tries() int {
	if o.quick {
		return 1
	}
	return 3
}

func (o options) validate() error {
	if o.only == sectionAll || slices.Contains(parts, o.only) {
		return nil
	}
	return fmt.Errorf("-only %q: want one of %q", o.only, parts)
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/waybill", "binary under test")
	flag.StringVar(&o.out, "out", "", "output file (default bench/report.md; with -only standard output)")
	flag.StringVar((*string)(&o.only), "only", "", "section: runs, envelopes, models, engine (or its part timers), cluster (or its parts overload, cost, pickup), callers, scale, sealing (default the first four)")
	flag.StringVar(&o.spread, "spread", ".bin/spread", "launcher of the cluster, a host in several processes")
	flag.StringVar(&o.nats, "nats-server", ".bin/nats-server", "NATS server of the cluster")
	flag.IntVar(&o.runs, "runs", 100_000, "maximum number of runs in the cluster's log when the cost of a run is measured")
	flag.IntVar(&o.timers, "timers", 100_000, "number of runs with a timer for the same time when timers after a restart are measured")
	flag.StringVar(&o.attacks, "attacks", "", "attacks of hostile callers, comma-separated (default all)")
	flag.DurationVar(&o.together, "together", 10*time.Minute, "duration of all attacks together; 0 leaves them out")
	flag.StringVar(&o.cpu, "cpu", "", "file for a CPU profile of the attacked host")
	flag.StringVar(&o.heap, "heap", "", "file for a heap profile of the attacked host")
	flag.StringVar(&o.dir, "dir", "", "data directory, on the disk to measure (default a temporary directory)")
	flag.DurationVar(&o.seconds, "time", 4*time.Second, "duration of each load")
	flag.BoolVar(&o.quick, "quick", false, "measure fewer loads, of one second each")
	flag.Parse()
	if o.quick {
		o.seconds = time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "waybill-bench")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.dir = dir
	}
	r := &report{options: o}
	if o.only == sectionScale {
		doc, err := measureScale(ctx, o)
		if err != nil {
			return err
		}
		return o.write(doc)
	}
	steps := []func(context.Context, *report) error{machine}
	if o.has(sectionRuns) {
		steps = append(steps, idle, durable, relaxed, subscribers, profile)
	}
	if o.has(sectionEnvelopes) {
		steps = append(steps, envelopes)
	}
	if o.has(sectionModels) {
		steps = append(steps, models)
	}
	if o.has(sectionEngine) || o.only == sectionTimers {
		steps = append(steps, engine)
	}
	if o.clusters() {
		steps = append(steps, cluster)
	}
	if o.only == sectionCallers {
		steps = append(steps, hostileCallers)
	}
	if o.only == sectionSealing {
		steps = append(steps, sealing)
	}
	for _, step := range steps {
		if err := step(ctx, r); err != nil {
			return err
		}
	}
	if err := o.write([]byte(r.render())); err != nil {
		return err
	}
	return r.missedCallers()
}

// write writes the report. A single section replaces the whole report only on request.
func (o options) write(doc []byte) error {
	switch {
	case o.out != "":
		return os.WriteFile(o.out, doc, 0o600)
	case o.only != sectionAll:
		_, err := os.Stdout.Write(doc)
		return err
	}
	return os.WriteFile("bench/report.md", doc, 0o600)
}

// chain is a workflow of n consecutive no-op nodes.
func chain(n int) (id string, doc []byte) {
	id = fmt.Sprintf("bench-%d", n)
	var nodes, edges []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%02d","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}`, i))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%02d","targetNodeId":"n%02d"}`, i, i-1, i))
		}
	}
	return id, []byte(fmt.Sprintf(`{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ",")))
}

func deploy(ctx context.Context, c *client) error {
	for _, n := range []int{1, 3, 10} {
		_, doc := chain(n)
		if _, err := c.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
			return err
		}
	}
	return nil
}

// runsOf loads the host with runs of a chain.
func runsOf(ctx context.Context, base string, nodes, clients int, d time.Duration) (result, error) {
	c := newClient(base, clients)
	defer c.http.CloseIdleConnections()
	id, _ := chain(nodes)
	body := []byte(`{"workflowId":"` + id + `"}`)
	return load(ctx, clients, d, func(ctx context.Context) error { return c.run(ctx, body) })
}

func clientCounts(o options) []int {
	if o.quick {
		return []int{1, 16}
	}
	return []int{1, 16, 64, 256}
}

// durable measures the default durability: an acknowledged write is on disk.
func durable(ctx context.Context, r *report) error {
	return withHost(ctx, r, "sync", func(h *host) error {
		for _, nodes := range []int{1, 3, 10} {
			for _, n := range clientCounts(r.options) {
				res, err := runsOf(ctx, h.ready.HTTP, nodes, n, r.options.seconds)
				if err != nil {
					return err
				}
				r.durable = append(r.durable, runRow{nodes, res})
			}
		}
		return snapshots(ctx, r, h)
	})
}

// relaxed measures --durability process.
func relaxed(ctx context.Context, r *report) error {
	return withHost(ctx, r, "process", func(h *host) error {
		for _, n := range clientCounts(r.options) {
			res, err := runsOf(ctx, h.ready.HTTP, 1, n, r.options.seconds)
			if err != nil {
				return err
			}
			r.relaxed = append(r.relaxed, runRow{1, res})
		}
		return nil
	})
}

func withHost(ctx context.Context, r *report, durability string, do func(*host) error) error {
	for _, writers := range []int{1, 16, 64} {
		rate, err := ceiling(ctx, r.options.dir, durability == "sync", writers, r.options.seconds)
		if err != nil {
			return err
		}
		r.ceilings = append(r.ceilings, ceilingRow{durability, writers, rate})
	}
	h, err := startHost(ctx, r.options.bin, r.options.dir, "--durability", durability)
	if err != nil {
		return err
	}
	defer h.stop()
	if err := deploy(ctx, newClient(h.ready.HTTP, 1)); err != nil {
		return err
	}
	return do(h)
}

// snapshots reads finished runs.
func snapshots(ctx context.Context, r *report, h *host) error {
	c := newClient(h.ready.HTTP, 64)
	defer c.http.CloseIdleConnections()
	b, err := c.do(ctx, http.MethodGet, "/v1/runs?limit=1&status=completed", nil)
	if err != nil {
		return err
	}
	_, id, _ := strings.Cut(string(b), `"runId":"`)
	id, _, _ = strings.Cut(id, `"`)
	r.snapshots, err = load(ctx, 32, r.options.seconds, func(ctx context.Context) error {
		_, err := c.do(ctx, http.MethodGet, "/v1/runs/"+id, nil)
		return err
	})
	return err
}

// idle measures an idle host.
func idle(ctx context.Context, r *report) error {
	st, err := os.Stat(r.options.bin)
	if err != nil {
		return err
	}
	r.binaryMB = float64(st.Size()) / 1e6
	for range 5 {
		h, err := startHost(ctx, r.options.bin, r.options.dir)
		if err != nil {
			return err
		}
		r.starts = append(r.starts, h.took)
		if len(r.starts) < 5 {
			h.stop()
			continue
		}
		err = r.watch(h)
		h.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// watch measures an idle host for a while.
func (r *report) watch(h *host) error {
	const d = 10 * time.Second
	time.Sleep(2 * time.Second) // work left from the start
	before, err := h.proc()
	if err != nil {
		return err
	}
	time.Sleep(d)
	after, err := h.proc()
	r.idleRSS, r.idleCPU = after.rssMB, (after.cpu-before.cpu).Seconds()/d.Seconds()*100
	return err
}
