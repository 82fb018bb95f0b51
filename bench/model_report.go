package main

import (
	"fmt"
	"time"
)

// render writes the section.
func (m modelFigures) render(p func(string, ...any)) {
	p("\n## Calls of models\n\nA node asks a model for a value of a schema: a question of 0.5 KB, an answer of 2 KB in eight pieces. `waybill dev` is a\n"+
		"process of its own; the model is a double of an OpenAI-compatible server, in the load client's process. Load client, double and\n"+
		"host share the machine's cores; the first two collect their garbage rarely (GOGC=%d), for that is no cost of the host, and\n"+
		"half of the baseline's p99 without. Before the load the host has shown that it refuses an answer against the schema and takes a\n"+
		"known secret out of one. Calls come at a fixed rate, whatever the answers take; what takes a second longer than the double has\n"+
		"failed. The baseline is the same load on the double, with the host's own adapter and no host; where it does not hold a rate, the\n"+
		"machine does not, and that row says nothing of the host. The machine's load average before: %s.\n\n"+
		"Within a run: runs of %d such nodes in a row, as an agent works. Counted is what lies between the last byte of one answer and the\n"+
		"arrival of the next question: the whole of what the host does for a call. With `sync` everything recorded gets to the disk, and is\n"+
		"shown to nobody before; within a run the next question waits until the log has taken what it follows from, not for the disk,\n"+
		"so that a power cut can have a question asked again (docs/adr/0035). Alone: each call is a run of its own, so that the\n"+
		"beginning of the session, the end of the run and the stream of its events count as well.\n\n"+
		"Streamed answers come in 40 pieces. Each is shown as it comes, but for its end, where that could begin a secret.\n\n", ownGC, m.load, links)
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
		"byte until the caller sees the run completed. All: also the creation. The late is the load client's own lateness.\n\n%s",
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
		why = "; such as: " + r.host.failure.Error()
	}
	return figure{
		what + r.name(), absolute, fmt.Sprintf("overrun: %.1f %% of %d succeed%s", r.host.success(), r.host.made, why), target, false,
		fmt.Sprintf("baseline: %.1f %% of %d succeed", r.base.success(), r.base.made),
	}
}

func (r modelRow) figures() []figure {
	if r.host.success() < overrun {
		return []figure{r.overran("added around a call alone, ", "p50 ≤ 1 ms, p99 ≤ 5 ms, 100 %")}
	}
	p50, p99 := above(r.host.over, r.base.over, 50), above(r.host.over, r.base.over, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.over.percentile(percent)), short(r.host.over.percentile(percent)))
	}
	cpu := fmt.Sprintf("%s of the host, %s of load client and double", r.perCall(r.hostCPU), r.perCall(r.ownCPU))
	out := []figure{
		{"added around a call alone, " + r.name() + ", p50", absolute, short(p50), "≤ 1 ms", p50 <= time.Millisecond, of(50)},
		{"… p99", absolute, short(p99), "≤ 5 ms", p99 <= 5*time.Millisecond, of(99)},
		{"… p50 over the baseline's", ratio, fmt.Sprintf("%.1f×", float64(r.host.over.percentile(50))/float64(r.base.over.percentile(50))), "", false, "1×"},
		{"… succeeded", ratio, fmt.Sprintf("%.2f %%", r.host.success()), "100 %", r.host.succeeded == r.host.made, fmt.Sprintf("baseline %.2f %%", r.base.success())},
		{"… RSS after it, and the most so far", absolute, fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB), "≤ 200 MB", r.proc.peakMB <= 200, ""},
		{"… CPU of a call", absolute, cpu, "", false, "without a host: " + r.perCall(r.baseCPU)},
		{
			"… CPU of the host over that of the baseline's two ends", ratio, fmt.Sprintf("%.1f×", float64(r.hostCPU)/float64(max(r.baseCPU, 1))), "", false, "1×",
		},
	}
	if r.host.failure != nil {
		out = append(out, figure{"… one of the failures", count, r.host.failure.Error(), "", false, ""})
	}
	return out
}

func (r chainRow) figures() []figure {
	name := fmt.Sprintf("added around a call within a run, `%s`, %d/s, the double takes %s", r.durability, r.rate, r.how.wait)
	if r.host.success() < overrun {
		return []figure{{name, absolute, fmt.Sprintf("overrun: %.1f %% of %d succeed; such as: %v", r.host.success(), r.host.made, r.host.failure), "p50 ≤ 1 ms, p99 ≤ 5 ms, 100 %", false, ""}}
	}
	p50, p99 := above(r.host.gaps, r.base.gaps, 50), above(r.host.gaps, r.base.gaps, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.gaps.percentile(percent)), short(r.host.gaps.percentile(percent)))
	}
	perCall := func(all time.Duration) string { return short(all / time.Duration(max(r.host.made, 1))) }
	return []figure{
		{name + ", p50", absolute, short(p50), "≤ 1 ms", p50 <= time.Millisecond, of(50)},
		{"… p99", absolute, short(p99), "≤ 5 ms", p99 <= 5*time.Millisecond, of(99)},
		{"… p50 over the baseline's", ratio, fmt.Sprintf("%.1f×", float64(r.host.gaps.percentile(50))/float64(r.base.gaps.percentile(50))), "", false, "1×"},
		{"… succeeded", ratio, fmt.Sprintf("%.2f %%", r.host.success()), "100 %", r.host.succeeded == r.host.made, fmt.Sprintf("baseline %.2f %%", r.base.success())},
		{"… RSS after it, and the most so far", absolute, fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB), "≤ 200 MB", r.proc.peakMB <= 200, ""},
		{"… CPU of a call", absolute, fmt.Sprintf("%s of the host, %s of load client and double", perCall(r.hostCPU), perCall(r.ownCPU)), "", false, "without a host: " + perCall(r.baseCPU)},
	}
}

func (r modelRow) streamFigures() []figure {
	if r.host.success() < overrun {
		return []figure{r.overran("added to the first piece of a streamed answer, ", "p99 ≤ 5 ms, 100 %")}
	}
	p50, p99 := above(r.host.first, r.base.first, 50), above(r.host.first, r.base.first, 99)
	of := func(percent float64) string {
		return fmt.Sprintf("baseline %s, host %s", short(r.base.first.percentile(percent)), short(r.host.first.percentile(percent)))
	}
	return []figure{
		{"added to the first piece of a streamed answer, " + r.name() + ", p50", absolute, short(p50), "", false, of(50)},
		{"… p99", absolute, short(p99), "≤ 5 ms", p99 <= 5*time.Millisecond, of(99)},
		{"… succeeded", ratio, fmt.Sprintf("%.2f %%", r.host.success()), "100 %", r.host.succeeded == r.host.made, fmt.Sprintf("baseline %.2f %%", r.base.success())},
		{"… RSS after it, and the most so far", absolute, fmt.Sprintf("%.0f MB, %.0f MB", r.proc.rssMB, r.proc.peakMB), "≤ 200 MB", r.proc.peakMB <= 200, ""},
		{"… CPU of a call of 40 pieces", absolute, fmt.Sprintf("%s of the host, %s of load client and double", r.perCall(r.hostCPU), r.perCall(r.ownCPU)), "", false, "without a host: " + r.perCall(r.baseCPU)},
	}
}

func (r mostRow) figure() figure {
	beyond := "not looked for"
	if r.broke > 0 {
		beyond = fmt.Sprintf("at %d/s %.1f %% succeed", r.broke, r.beyond.success())
	}
	held := fmt.Sprintf("%d/s, p99 added %s", r.rate, short(r.at.over.percentile(99)))
	if r.rate == 0 {
		held = fmt.Sprintf("fewer than %d/s", r.broke)
	}
	return figure{
		fmt.Sprintf("most calls of which 99 %% succeed, `%s`, the double takes %s", r.durability, r.how.wait), absolute,
		held, "", false, beyond,
	}
}
