package main

import (
	"fmt"
	"time"
)

// render writes the section.
func (f engineFigures) render(p func(string, ...any)) {
	p("\n## Large, wide and waiting runs\n\nOne `waybill dev`, an acknowledged write is on disk. Long runs are models that stream words beside each other. A fork counts until\n"+
		"it is acknowledged; the next is asked for when it has ended. A page is %d events over REST. Wide runs are timed from their creation until\n"+
		"their caller has seen them complete, in turns with runs of one such branch. The machine's load average before: %s.\n\n", pageSize, f.load)
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
			fmt.Sprintf("a %s of a run of %d events from %d, the slowest of %d", row.mode, row.events, row.from, len(row.took)), absolute,
			ms(slowest) + ", p50 " + ms(row.took.percentile(50)), "≤ 100 ms", slowest <= forkTarget, "",
		})
	}
	for _, row := range f.pages {
		p99 := row.took.percentile(99)
		out = append(out, figure{
			fmt.Sprintf("a page of a run of %d events, %s, p99", row.events, row.where), absolute,
			ms(p99) + ", p50 " + ms(row.took.percentile(50)), "≤ 5 ms", p99 <= pageTarget, "",
		})
	}
	if len(f.pages) == 3 {
		out = append(out, figure{
			"… at its end over at its start, p50", ratio,
			fmt.Sprintf("%.2f×", f.pages[1].took.percentile(50).Seconds()/f.pages[0].took.percentile(50).Seconds()), "", false, "",
		})
	}
	out = append(out, f.woken()...)
	for _, row := range f.wide {
		by := row.all.percentile(50).Seconds() / row.one.percentile(50).Seconds()
		out = append(out, figure{
			fmt.Sprintf("%d branches, each %s, over one of them, p50", row.branches, row.branch), ratio, fmt.Sprintf("%.2f×", by), "≤ 2×", by <= wideTarget,
			fmt.Sprintf("%s of %s", ms(row.all.percentile(50)), ms(row.one.percentile(50))),
		})
	}
	if f.wait.runs == 0 {
		return out
	}
	kb := (f.wait.held - f.wait.alive) / float64(max(f.wait.runs, 1))
	more := f.wait.busy - f.wait.idle
	return append(out,
		figure{
			fmt.Sprintf("one of %d runs that wait for a person, on the heap", f.wait.runs), absolute, fmt.Sprintf("%.1f KB", kb), "≤ 50 KB", kb <= waitTarget,
			fmt.Sprintf("the kernel counts %.0f MB before them and %.0f MB after, with what making them left to collect", f.wait.before.rssMB, f.wait.after.rssMB),
		},
		figure{
			"… CPU of all of them in a second", absolute, short(more), "none: ≤ 1 ms", more <= time.Millisecond,
			fmt.Sprintf("%s without them", short(f.wait.idle)),
		})
}

// woken compares the wakes of long runs with those of the shortest.
func (f engineFigures) woken() []figure {
	var out []figure
	for i, row := range f.wakes {
		p50 := row.took.percentile(50)
		g := figure{
			fmt.Sprintf("from an answer to the next question of a run of %d events, p50", row.events), absolute,
			ms(p50) + ", p99 " + ms(row.took.percentile(99)), "", false, "",
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
