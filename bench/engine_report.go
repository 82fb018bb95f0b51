package main

import (
	"fmt"
	"time"
)

// render writes the section.
func (f engineFigures) render(p func(string, ...any)) {
	p("\n## Large, wide and waiting runs\n\nOne `waybill dev` with an fsync before every acknowledgement. Long runs have parallel models that stream words. The time of a fork ends\n"+
		"with its acknowledgement; the next fork starts when its run has ended. A page is %d events over REST. Wide runs are timed from creation\n"+
		"until their caller sees them completed, alternating with runs of one branch. The machine's load average before: %s.\n\n", pageSize, f.load)
	figureTable(p, f.figures())
}

// Targets.
const (
	forkTarget = 100 * time.Millisecond
	pageTarget = 5 * time.Millisecond
	wakeTarget = 5 * time.Millisecond
	wideTarget = 2.0
	waitTarget = 50.0 // KB
)

func (f engineFigures) figures() []figure {
	var out []figure
	if f.timers.runs > 0 {
		out = append(out, f.timers.figure())
	}
	for _, row := range f.forks {
		slowest := row.took.percentile(100)
		out = append(out, figure{
			what:     fmt.Sprintf("a %s of a run of %d events from %d, the slowest of %d", row.mode, row.events, row.from, len(row.took)),
			basis:    absolute,
			measured: ms(slowest) + ", p50 " + ms(row.took.percentile(50)),
			target:   "≤ 100 ms",
			met:      slowest <= forkTarget,
		})
	}
	for _, row := range f.pages {
		p99 := row.took.percentile(99)
		out = append(out, figure{
			what:     fmt.Sprintf("a page of a run of %d events, %s, p99", row.events, row.where),
			basis:    absolute,
			measured: ms(p99) + ", p50 " + ms(row.took.percentile(50)),
			target:   "≤ 5 ms",
			met:      p99 <= pageTarget,
		})
	}
	if len(f.pages) == 3 {
		out = append(out, figure{
			what:     "… at its end relative to its start, p50",
			basis:    ratio,
			measured: fmt.Sprintf("%.2f×", f.pages[1].took.percentile(50).Seconds()/f.pages[0].took.percentile(50).Seconds()),
		})
	}
	out = append(out, f.woken()...)
	for _, row := range f.wide {
		by := row.all.percentile(50).Seconds() / row.one.percentile(50).Seconds()
		out = append(out, figure{
			what:     fmt.Sprintf("%d branches, each %s, relative to one branch, p50", row.branches, row.branch),
			basis:    ratio,
			measured: fmt.Sprintf("%.2f×", by),
			target:   "≤ 2×",
			met:      by <= wideTarget,
			ceiling:  fmt.Sprintf("%s of %s", ms(row.all.percentile(50)), ms(row.one.percentile(50))),
		})
	}
	if f.wait.runs == 0 {
		return out
	}
	kb := (f.wait.held - f.wait.alive) / float64(max(f.wait.runs, 1))
	more := f.wait.busy - f.wait.idle
	return append(out,
		figure{
			what:     fmt.Sprintf("heap per run, of %d runs that wait for a person", f.wait.runs),
			basis:    absolute,
			measured: fmt.Sprintf("%.1f KB", kb),
			target:   "≤ 50 KB",
			met:      kb <= waitTarget,
			ceiling:  fmt.Sprintf("RSS %.0f MB before them and %.0f MB after, with uncollected garbage", f.wait.before.rssMB, f.wait.after.rssMB),
		},
		figure{
			what:     "… CPU of all of them per second",
			basis:    absolute,
			measured: short(more),
			target:   "none: ≤ 1 ms",
			met:      more <= time.Millisecond,
			ceiling:  fmt.Sprintf("%s without them", short(f.wait.idle)),
		})
}

// woken compares the wakes of long runs with those of the shortest.
func (f engineFigures) woken() []figure {
	var out []figure
	for i, row := range f.wakes {
		p50 := row.took.percentile(50)
		g := figure{
			what:     fmt.Sprintf("from an answer to the next question of a run of %d events, p50", row.events),
			basis:    absolute,
			measured: ms(p50) + ", p99 " + ms(row.took.percentile(99)),
		}
		if i > 0 {
			more := p50 - f.wakes[0].took.percentile(50)
			g.target, g.met = "≤ 5 ms over the shortest", more <= wakeTarget
			g.ceiling = fmt.Sprintf("%s more", ms(max(more, 0)))
		}
		out = append(out, g)
	}
	return out
}
