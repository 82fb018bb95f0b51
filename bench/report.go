package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
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
}

// machine says what the figures were measured on.
func machine(_ context.Context, r *report) error {
	model := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	r.machine = fmt.Sprintf("%d cores, %s, %s/%s, %s; the load client runs on the same cores", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
	var err error
	r.fsyncP50, r.fsyncP99, err = fsyncs(r.options.dir, 2000)
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
	r.targets(p)
	p("\n## The embedded log alone\n\nThe two frames of a no-op run, guarded as the host guards them.\n\n| durability | writers | frames/s |\n|---|---|---|\n")
	for _, c := range r.ceilings {
		p("| %s | %d | %.0f |\n", c.durability, c.writers, c.perSec)
	}
	runTable(p, "Create to completed, an acknowledged write is on disk", r.durable)
	runTable(p, "Create to completed, `--durability process`", r.relaxed)
	p("\n## Event streams\n\nFrom the event's timestamp to the subscriber, debug mode, all on one run.\n\n| subscribers | p50 | p99 | events received |\n|---|---|---|---|\n")
	for _, s := range r.sse {
		p("| %d | %s | %s | %d |\n", s.subscribers, ms(s.p50), ms(s.p99), s.events)
	}
	p("\n## Where the time goes\n\nShares of the host's CPU time under no-op runs from 64 clients, by what is on the stack; they overlap. The load client\ntakes its part of the same cores, and with an fsync before every acknowledgement the log's share is mostly waiting, which\na CPU profile does not show.\n\n| area | share |\n|---|---|\n")
	for _, s := range r.shares {
		p("| %s | %s |\n", s.area, s.percent)
	}
	p("\n## The process\n\nCold starts: %s.\n", joined(r.starts))
	return b.String()
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

// targets holds the figures against what they should be.
func (r *report) targets(p func(string, ...any)) {
	p("| what | target | measured | met |\n|---|---|---|---|\n")
	row := func(what, target, measured string, met bool) {
		word := "**no**"
		if met {
			word = "yes"
		}
		p("| %s | %s | %s | %s |\n", what, target, measured, word)
	}
	// by says how far a figure is from its target.
	by := func(measured string, ratio float64) string {
		return fmt.Sprintf("%s, %.2f× the target", measured, ratio)
	}
	noop, top := r.best(r.durable, 1), r.ceiling("sync")
	row("no-op run, durable, of the log's own ceiling for its two frames", "≥ 60 %",
		by(fmt.Sprintf("%.0f %% (%.0f runs/s of %.0f)", 200*noop.PerSec/top, noop.PerSec, top/2), 2*noop.PerSec/top/0.6), 2*noop.PerSec >= 0.6*top)
	fast := r.best(r.relaxed, 1)
	row("no-op run, `--durability process`", "≥ 3,500 runs/s", by(fmt.Sprintf("%.0f runs/s", fast.PerSec), fast.PerSec/3500), fast.PerSec >= 3500)
	one := r.at(r.durable, 1, 1)
	row("no-op run, one client, end to end", "p50 ≤ 2 ms", by(ms(one.P50), one.P50.Seconds()/0.002), one.P50 <= 2*time.Millisecond)
	three := r.at(r.durable, 3, 16)
	row("3-node run, 16 clients", "≥ 1,000 runs/s, p50 ≤ 15 ms, p99 ≤ 40 ms", fmt.Sprintf("%.0f runs/s, %s, %s", three.PerSec, ms(three.P50), ms(three.P99)),
		three.PerSec >= 1000 && three.P50 <= 15*time.Millisecond && three.P99 <= 40*time.Millisecond)
	row("snapshot reads", "≥ 10,000/s", by(fmt.Sprintf("%.0f/s", r.snapshots.PerSec), r.snapshots.PerSec/10000), r.snapshots.PerSec >= 10000)
	for _, s := range r.sse {
		if s.subscribers == 500 {
			row("SSE, 500 subscribers, append to client", "p99 ≤ 50 ms", ms(s.p99), s.p99 <= 50*time.Millisecond)
		}
	}
	slowest := time.Duration(0)
	for _, s := range r.starts {
		slowest = max(slowest, s)
	}
	row("ready after start, slowest of five", "≤ 300 ms", ms(slowest), slowest <= 300*time.Millisecond)
	row("idle RSS", "≤ 80 MB", fmt.Sprintf("%.0f MB", r.idleRSS), r.idleRSS <= 80)
	row("idle CPU", "≤ 0.5 % of a core", fmt.Sprintf("%.2f %%", r.idleCPU), r.idleCPU <= 0.5)
	row("binary", "≤ 80 MB", fmt.Sprintf("%.0f MB", r.binaryMB), r.binaryMB <= 80)
}
