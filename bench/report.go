package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

type runRow struct {
	nodes int
	result
}

type ceilingRow struct {
	durability string
	writers    int
	perSec     float64
}

// report collects the figures.
type report struct {
	options  options
	machine  string
	fsyncP50 time.Duration
	fsyncP99 time.Duration
	ceilings []ceilingRow
	durable  []runRow
	relaxed  []runRow

	snapshots result
	sse       []sseRow
	starts    []time.Duration
	idleRSS   float64
	idleCPU   float64
	binaryMB  float64
	shares    []share

	envelopes envelopeFigures
	models    modelFigures
	engine    engineFigures
	cluster   clusterFigures
	callers   []callersRow
	sealing   sealingFigures
	together  *callersRow // nil unless measured
}

// hardware describes the machine.
func hardware() string {
	model := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// machine measures the machine itself.
func machine(_ context.Context, r *report) error {
	r.machine = hardware() + "; the load client runs on the same cores"
	all, err := fsyncs(r.options.dir, 2*r.options.fsyncs())
	r.fsyncP50, r.fsyncP99 = all.percentile(50), all.percentile(99)
	return err
}

func (r *report) best(rows []runRow, nodes int) result {
	var best result
	for _, row := range rows {
		if row.nodes == nodes && row.PerSec > best.PerSec {
			best = row.result
		}
	}
	return best
}

func (r *report) at(rows []runRow, nodes, clients int) result {
	for _, row := range rows {
		if row.nodes == nodes && row.Clients == clients {
			return row.result
		}
	}
	return result{}
}

func (r *report) ceiling(durability string) float64 {
	best := 0.0
	for _, c := range r.ceilings {
		if c.durability == durability {
			best = max(best, c.perSec)
		}
	}
	return best
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

// render writes the report.
func (r *report) render() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Benchmarks\n\nWritten by `make bench`. Machine: %s.\nA 1 KB write and fsync takes %s at the median, %s at p99. Each load lasts %s.\n\n",
		r.machine, ms(r.fsyncP50), ms(r.fsyncP99), r.options.seconds)
	p("%s\n", bases)
	if r.options.has(sectionRuns) {
		r.runs(p)
	}
	if r.options.has(sectionEnvelopes) {
		r.envelopes.render(p, r.options.tries())
	}
	if r.options.has(sectionModels) {
		r.models.render(p)
	}
	if r.options.has(sectionEngine) || r.options.only == sectionTimers {
		r.engine.render(p)
	}
	if r.options.clusters() {
		r.cluster.render(p)
	}
	if r.options.only == sectionCallers {
		r.callersTable(p)
	}
	if r.options.only == sectionSealing {
		r.sealing.render(p)
	}
	return b.String()
}

// runs writes the figures of runs.
func (r *report) runs(p func(string, ...any)) {
	figureTable(p, r.targets())
	p("\n## The embedded log alone\n\nThe two frames of a no-op run, with the compare-and-set of the host.\n\n| durability | writers | frames/s |\n|---|---|---|\n")
	for _, c := range r.ceilings {
		p("| %s | %d | %.0f |\n", c.durability, c.writers, c.perSec)
	}
	runTable(p, "Create to completed, fsync before every acknowledgement", r.durable)
	runTable(p, "Create to completed, `--durability process`", r.relaxed)
	p("\n## Event streams\n\nFrom the event's timestamp to the subscriber, in debug mode. All subscribers follow one run.\n\n| subscribers | p50 | p99 | events received |\n|---|---|---|---|\n")
	for _, s := range r.sse {
		p("| %d | %s | %s | %d |\n", s.subscribers, ms(s.p50), ms(s.p99), s.events)
	}
	p("\n## Where the time goes\n\nShares of the host's CPU time under no-op runs from 64 clients, by functions on the stack; they overlap. The load client\nuses the same cores. The log mostly waits for fsyncs, which a CPU profile does not show.\n\n| area | share |\n|---|---|\n")
	for _, s := range r.shares {
		p("| %s | %s |\n", s.area, s.percent)
	}
	p("\n## The process\n\nCold starts: %s.\n", joined(r.starts))
}

func joined(ds []time.Duration) string {
	var out []string
	for _, d := range ds {
		out = append(out, ms(d))
	}
	return strings.Join(out, ", ")
}

func runTable(p func(string, ...any), title string, rows []runRow) {
	p("\n## %s\n\n| nodes | clients | runs/s | p50 | p99 |\n|---|---|---|---|---|\n", title)
	for _, row := range rows {
		p("| %d | %d | %.0f | %s | %s |\n", row.nodes, row.Clients, row.PerSec, ms(row.P50), ms(row.P99))
	}
}

// targets compares the figures with their targets.
func (r *report) targets() []figure {
	// by formats the ratio of a figure to its target.
	by := func(measured string, ratio float64) string {
		return fmt.Sprintf("%s, %.2f× the target", measured, ratio)
	}
	noop, top := r.best(r.durable, 1), r.ceiling("sync")
	fast := r.best(r.relaxed, 1)
	one := r.at(r.durable, 1, 1)
	three := r.at(r.durable, 3, 16)
	slowest := slices.Max(append(r.starts, 0))
	out := []figure{
		{
			what:     "no-op run, durable, relative to the log's ceiling for its two frames",
			basis:    ratio,
			measured: by(fmt.Sprintf("%.0f %%", 200*noop.PerSec/top), 2*noop.PerSec/top/0.6),
			target:   "≥ 60 %",
			met:      2*noop.PerSec >= 0.6*top,
			ceiling:  fmt.Sprintf("%.0f runs/s of %.0f", noop.PerSec, top/2),
		},
		{
			what:     "no-op run, `--durability process`",
			basis:    absolute,
			measured: by(fmt.Sprintf("%.0f runs/s", fast.PerSec), fast.PerSec/3500),
			target:   "≥ 3,500 runs/s",
			met:      fast.PerSec >= 3500,
			ceiling:  fmt.Sprintf("%.0f runs/s", r.ceiling("process")/2),
		},
		{
			what:     "no-op run, one client, end to end",
			basis:    absolute,
			measured: by(ms(one.P50), one.P50.Seconds()/0.002),
			target:   "p50 ≤ 2 ms",
			met:      one.P50 <= 2*time.Millisecond,
		},
		{
			what:     "3-node run, 16 clients",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f runs/s, %s, %s", three.PerSec, ms(three.P50), ms(three.P99)),
			target:   "≥ 1,000 runs/s, p50 ≤ 15 ms, p99 ≤ 40 ms",
			met:      three.PerSec >= 1000 && three.P50 <= 15*time.Millisecond && three.P99 <= 40*time.Millisecond,
		},
		{
			what:     "snapshot reads",
			basis:    absolute,
			measured: by(fmt.Sprintf("%.0f/s", r.snapshots.PerSec), r.snapshots.PerSec/10000),
			target:   "≥ 10,000/s",
			met:      r.snapshots.PerSec >= 10000,
		},
	}
	for _, s := range r.sse {
		if s.subscribers == 500 {
			out = append(out, figure{
				what:     "SSE, 500 subscribers, append to client",
				basis:    absolute,
				measured: ms(s.p99),
				target:   "p99 ≤ 50 ms",
				met:      s.p99 <= 50*time.Millisecond,
			})
		}
	}
	return append(out,
		figure{
			what:     "ready after start, slowest of five",
			basis:    absolute,
			measured: ms(slowest),
			target:   "≤ 300 ms",
			met:      slowest <= 300*time.Millisecond,
		},
		figure{
			what:     "idle RSS",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f MB", r.idleRSS),
			target:   "≤ 80 MB",
			met:      r.idleRSS <= 80,
		},
		figure{
			what:     "idle CPU",
			basis:    absolute,
			measured: fmt.Sprintf("%.2f %%", r.idleCPU),
			target:   "≤ 0.5 % of a core",
			met:      r.idleCPU <= 0.5,
		},
		figure{
			what:     "binary",
			basis:    count,
			measured: fmt.Sprintf("%.0f MB", r.binaryMB),
			target:   "≤ 80 MB",
			met:      r.binaryMB <= 80,
		})
}
