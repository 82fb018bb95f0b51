package main

import (
	"fmt"
	"time"
)

// render writes the section.
func (m modelFigures) render(p func(string, ...any)) {
	p("\n## Model calls\n\nA node requests a value of a schema from a model: a question of 0.5 KB, an answer of 2 KB in eight pieces. `waybill dev` is a\n"+
		"separate process. The model is a double of an OpenAI-compatible server in the load client's process. Load client, double and\n"+
		"host share the machine's cores. The first two run with GOGC=%d: their own garbage collection would be half of the baseline's p99.\n"+
		"Before the load, a probe checks that the host rejects an answer that violates the schema and redacts a known secret. Calls\n"+
		"start at a fixed rate, independent of the answers. A call has failed if it takes a second longer than the double. The baseline\n"+
		"is the same load on the double through the host's adapter, without a host. If the baseline does not sustain a rate, the machine\n"+
		"is too slow for it, and the row says nothing about the host. The machine's load average before: %s.\n\n"+
		"Within a run: runs of %d such nodes in sequence, like an agent's. The overhead is the time from the last byte of one answer to\n"+
		"the arrival of the next question: all work of the host for a call. With `sync`, events are on disk before any client sees them.\n"+
		"Within a run, the next question waits until the log has accepted the frames before it, not until they are on disk: after a power\n"+
		"cut, a question may be repeated (docs/adr/0035). Single: each call is a run of its own, so the start of the session, the end of\n"+
		"the run and its event stream are included.\n\n"+
		"Streamed answers have 40 pieces. Each piece is shown as it arrives, except for an end that could begin a secret.\n\n", ownGC, m.load, links)
	var figures []figure
	for _, row := range m.chains {
		figures = append(figures, row.figures()...)
	}
	for _, row := range m.rows {
		figures = append(figures, row.figures()...)
	}
	for _, row := range m.stream {
		figures = append(figures, row.streamFigures()...)
	}
	for _, row := range m.most {
		figures = append(figures, row.figure())
	}
	figureTable(p, figures)
	p("\n### Where a call's time goes\n\nBefore: from the acknowledgement of the run's creation until the double has the request. After: from the double's last\n"+
		"byte until the caller sees the run completed. All: with the creation. Late: the lateness of the load client.\n\n%s",
		"| load | side | succeeded | before p50, p99 | after p50, p99 | both p50, p99 | all p50, p99 | late p99 |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range append(append([]modelRow(nil), m.rows...), m.stream...) {
		row.host.line(p, row.name(), "host")
		row.base.line(p, row.name(), "baseline")
	}
}

// line writes a load of one side.
func (f callFigures) line(p func(string, ...any), load, side string) {
	p("| %s | %s | %d of %d | %s | %s | %s | %s | %s |\n", load, side, f.succeeded, f.made,
		pair(f.before), pair(f.after), pair(f.over), pair(f.whole), short(f.late.percentile(99)))
}

// pair formats the percentiles with targets.
func pair(s samples) string {
	if len(s) == 0 {
		return "–"
	}
	return short(s.percentile(50)) + ", " + short(s.percentile(99))
}

func (r modelRow) name() string {
	s := fmt.Sprintf("`%s`, %d/s, the double takes %s", r.durability, r.rate, r.how.wait)
	if r.how.interval > 0 {
		s += fmt.Sprintf(" and %s a piece", r.how.interval)
	}
	return s
}

// above is the time that the host adds to the baseline at a percentile.
func above(host, base samples, percent float64) time.Duration {
	return host.percentile(percent) - base.percentile(percent)
}

// perCall is the CPU time per call.
func (r modelRow) perCall(all time.Duration) string {
	return short(all / time.Duration(max(r.host.made, 1)))
}

// overran is the only figure of a host whose queue grew.
func (r modelRow) overran(what, target string) figure {
	why := ""
	if r.host.failure != nil {
		why = "; for example: " + r.host.failure.Error()
	}
	return figure{
		what:     what + r.name(),
		basis:    absolute,
		measured: fmt.Sprintf("overloaded: %.1f %% of %d succeed%s", r.host.success(), r.host.made, why),
		target:   target,
		ceiling:  fmt.Sprintf("baseline: %.1f %% of %d succeed", r.base.success(), r.base.made),
	}
}

func (r modelRow) figures() []figure {
	if r.host.success() < overrun {
		return []figure{r.overran("overhead of a single call, ", "p50 ≤ 1 ms, p99 ≤ 5 ms, 100 %")}
	}
	p50, p99 := above(r.host.over, r.base.over, 50), above(r.host.over, r.base.over, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.over.percentile(percent)), short(r.host.over.percentile(percent)))
	}
	cpu := fmt.Sprintf("%s of the host, %s of load client and double", r.perCall(r.hostCPU), r.perCall(r.ownCPU))
	out := []figure{
		{
			what:     "overhead of a single call, " + r.name() + ", p50",
			basis:    absolute,
			measured: short(p50),
			target:   "≤ 1 ms",
			met:      p50 <= time.Millisecond,
			ceiling:  of(50),
		},
		{
			what:     "… p99",
			basis:    absolute,
			measured: short(p99),
			target:   "≤ 5 ms",
			met:      p99 <= 5*time.Millisecond,
			ceiling:  of(99),
		},
		{
			what:     "… p50 relative to the baseline's",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(r.host.over.percentile(50))/float64(r.base.over.percentile(50))),
			ceiling:  "1×",
		},
		{
			what:     "… succeeded",
			basis:    ratio,
			measured: fmt.Sprintf("%.2f %%", r.host.success()),
			target:   "100 %",
			met:      r.host.succeeded == r.host.made,
			ceiling:  fmt.Sprintf("baseline %.2f %%", r.base.success()),
		},
		{
			what:     "… RSS after it, and its peak so far",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB),
			target:   "≤ 200 MB",
			met:      r.proc.peakMB <= 200,
		},
		{
			what:     "… CPU per call",
			basis:    absolute,
			measured: cpu,
			ceiling:  "without a host: " + r.perCall(r.baseCPU),
		},
		{
			what:     "… CPU of the host relative to the baseline's client and double",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(r.hostCPU)/float64(max(r.baseCPU, 1))),
			ceiling:  "1×",
		},
	}
	if r.host.failure != nil {
		out = append(out, figure{
			what:     "… one of the failures",
			basis:    count,
			measured: r.host.failure.Error(),
		})
	}
	return out
}

func (r chainRow) figures() []figure {
	name := fmt.Sprintf("overhead of a call within a run, `%s`, %d/s, the double takes %s", r.durability, r.rate, r.how.wait)
	if r.host.success() < overrun {
		return []figure{{
			what:     name,
			basis:    absolute,
			measured: fmt.Sprintf("overloaded: %.1f %% of %d succeed; for example: %v", r.host.success(), r.host.made, r.host.failure),
			target:   "p50 ≤ 1 ms, p99 ≤ 5 ms, 100 %",
		}}
	}
	p50, p99 := above(r.host.gaps, r.base.gaps, 50), above(r.host.gaps, r.base.gaps, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.gaps.percentile(percent)), short(r.host.gaps.percentile(percent)))
	}
	perCall := func(all time.Duration) string { return short(all / time.Duration(max(r.host.made, 1))) }
	return []figure{
		{
			what:     name + ", p50",
			basis:    absolute,
			measured: short(p50),
			target:   "≤ 1 ms",
			met:      p50 <= time.Millisecond,
			ceiling:  of(50),
		},
		{
			what:     "… p99",
			basis:    absolute,
			measured: short(p99),
			target:   "≤ 5 ms",
			met:      p99 <= 5*time.Millisecond,
			ceiling:  of(99),
		},
		{
			what:     "… p50 relative to the baseline's",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(r.host.gaps.percentile(50))/float64(r.base.gaps.percentile(50))),
			ceiling:  "1×",
		},
		{
			what:     "… succeeded",
			basis:    ratio,
			measured: fmt.Sprintf("%.2f %%", r.host.success()),
			target:   "100 %",
			met:      r.host.succeeded == r.host.made,
			ceiling:  fmt.Sprintf("baseline %.2f %%", r.base.success()),
		},
		{
			what:     "… RSS after it, and its peak so far",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB),
			target:   "≤ 200 MB",
			met:      r.proc.peakMB <= 200,
		},
		{
			what:     "… CPU per call",
			basis:    absolute,
			measured: fmt.Sprintf("%s of the host, %s of load client and double", perCall(r.hostCPU), perCall(r.ownCPU)),
			ceiling:  "without a host: " + perCall(r.baseCPU),
		},
	}
}

func (r modelRow) streamFigures() []figure {
	if r.host.success() < overrun {
		return []figure{r.overran("overhead of the first piece of a streamed answer, ", "p99 ≤ 5 ms, 100 %")}
	}
	p50, p99 := above(r.host.first, r.base.first, 50), above(r.host.first, r.base.first, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.first.percentile(percent)), short(r.host.first.percentile(percent)))
	}
	return []figure{
		{
			what:     "overhead of the first piece of a streamed answer, " + r.name() + ", p50",
			basis:    absolute,
			measured: short(p50),
			ceiling:  of(50),
		},
		{
			what:     "… p99",
			basis:    absolute,
			measured: short(p99),
			target:   "≤ 5 ms",
			met:      p99 <= 5*time.Millisecond,
			ceiling:  of(99),
		},
		{
			what:     "… succeeded",
			basis:    ratio,
			measured: fmt.Sprintf("%.2f %%", r.host.success()),
			target:   "100 %",
			met:      r.host.succeeded == r.host.made,
			ceiling:  fmt.Sprintf("baseline %.2f %%", r.base.success()),
		},
		{
			what:     "… RSS after it, and its peak so far",
			basis:    absolute,
			measured: fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB),
			target:   "≤ 200 MB",
			met:      r.proc.peakMB <= 200,
		},
		{
			what:     "… CPU per call of 40 pieces",
			basis:    absolute,
			measured: fmt.Sprintf("%s of the host, %s of load client and double", r.perCall(r.hostCPU), r.perCall(r.ownCPU)),
			ceiling:  "without a host: " + r.perCall(r.baseCPU),
		},
	}
}

func (r mostRow) figure() figure {
	beyond := "not measured"
	if r.broke > 0 {
		beyond = fmt.Sprintf("at %d/s %.1f %% succeed", r.broke, r.beyond.success())
	}
	held := fmt.Sprintf("%d/s, overhead p99 %s", r.rate, short(r.at.over.percentile(99)))
	if r.rate == 0 {
		held = fmt.Sprintf("below %d/s", r.broke)
	}
	return figure{
		what:     fmt.Sprintf("highest rate at which 99 %% of calls succeed, `%s`, the double takes %s", r.durability, r.how.wait),
		basis:    absolute,
		measured: held,
		ceiling:  beyond,
	}
}
