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
	p("\n## Several processes\n\nA gateway, an acceptor, an eventlog with SQLite, a redactor and dispatchers, each a process with `GOMEMLIMIT=%d`,\n"+
		"which the kernel kills above %d MB where the bench may limit it, on one NATS server that syncs every write; load client\n"+
		"and model double share the machine with them. A dispatcher carries out %d runs at a time, and the model takes %s for each, so one makes\n"+
		"%.0f calls a second at the most. The machine's load average before: %s.\n\n", memoryLimit, memoryTarget, slots, modelTakes, slots/modelTakes.Seconds(), f.load)
	figureTable(p, f.figures())
}

func (f clusterFigures) figures() []figure {
	var out []figure
	for _, row := range f.scale {
		by := row.perSec / (float64(row.dispatchers) * f.scale[0].perSec)
		out = append(out, figure{
			fmt.Sprintf("calls of a slow model by %d dispatchers, of as many times those by one", row.dispatchers), ratio,
			fmt.Sprintf("%.2f×, %.0f/s", by, row.perSec), "≥ 0.9×, until the CPU is full", by >= scaleTarget,
			fmt.Sprintf("%.0f/s; %.0f %% of the machine's CPU", float64(row.dispatchers*slots)/modelTakes.Seconds(), 100*row.busy),
		})
	}
	for _, row := range f.cost {
		by := row.cpu.Seconds() / f.cost[0].cpu.Seconds()
		out = append(out, figure{
			fmt.Sprintf("CPU of a no-op run, all processes, when the log holds %d runs, of that at %d", row.held, f.cost[0].held), ratio,
			fmt.Sprintf("%.2f×, %s", by, short(row.cpu)), "flat: ≤ 1.15×", by <= costTarget, "",
		})
	}
	if f.scale != nil {
		still := f.recovery.percentile(99)
		out = append(out, figure{
			fmt.Sprintf("a run stands still when its dispatcher is killed, p99 of %d runs, %d kills", len(f.recovery), f.kills), absolute,
			fmt.Sprintf("%.2f s, p50 %.2f s", still.Seconds(), f.recovery.percentile(50).Seconds()), "≤ 5 s", len(f.recovery) > 0 && still <= recoveryTarget, "the lease: 3 s",
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
