package main

import (
	"fmt"
	"time"
)

// Targets.
const (
	scaleTarget    = 0.9
	costTarget     = 1.15 // tolerance of "flat" for noise
	recoveryTarget = 5 * time.Second
)

// render writes the section.
func (f clusterFigures) render(p func(string, ...any)) {
	p("\n## Several processes\n\nA gateway, an acceptor, an eventlog with SQLite, a redactor and dispatchers on one NATS server that syncs every write. Each service is\n"+
		"a process with `GOMEMLIMIT=%d`. Where the benchmark may create cgroups, the kernel kills it above %d MB. Load client and\n"+
		"model double run on the same machine. A dispatcher executes %d runs at a time and a model call takes %s, so one dispatcher makes\n"+
		"at most %.0f calls a second. The machine's load average before: %s.\n\n", memoryLimit, memoryTarget, slots, modelTakes, slots/modelTakes.Seconds(), f.load)
	figureTable(p, f.figures())
}

func (f clusterFigures) figures() []figure {
	var out []figure
	for _, row := range f.scale {
		by := row.perSec / (float64(row.dispatchers) * f.scale[0].perSec)
		out = append(out, figure{
			what:     fmt.Sprintf("calls of a slow model by %d dispatchers, relative to %[1]d times those of one", row.dispatchers),
			basis:    ratio,
			measured: fmt.Sprintf("%.2f×, %.0f/s", by, row.perSec),
			target:   "≥ 0.9×, until the CPU is full",
			met:      by >= scaleTarget,
			ceiling:  fmt.Sprintf("%.0f/s; %.0f %% of the machine's CPU", float64(row.dispatchers*slots)/modelTakes.Seconds(), 100*row.busy),
		})
	}
	for _, row := range f.cost {
		by := row.cpu.Seconds() / f.cost[0].cpu.Seconds()
		out = append(out, figure{
			what:     fmt.Sprintf("CPU of a no-op run, all processes, with %d runs in the log, relative to %d", row.held, f.cost[0].held),
			basis:    ratio,
			measured: fmt.Sprintf("%.2f×, %s", by, short(row.cpu)),
			target:   "flat: ≤ 1.15×",
			met:      by <= costTarget,
		})
	}
	if f.scale != nil {
		still := f.recovery.percentile(99)
		out = append(out, figure{
			what:     fmt.Sprintf("pause of a run whose dispatcher is killed, p99 of %d runs, %d kills", len(f.recovery), f.kills),
			basis:    absolute,
			measured: fmt.Sprintf("%.2f s, p50 %.2f s", still.Seconds(), f.recovery.percentile(50).Seconds()),
			target:   "≤ 5 s",
			met:      len(f.recovery) > 0 && still <= recoveryTarget,
			ceiling:  "the lease: 3 s",
		})
	}
	for _, row := range f.pickup {
		out = append(out, row.figures()...)
	}
	if len(f.overload.turns) > 0 {
		out = append(out, f.overload.figures()...)
	}
	return out
}
