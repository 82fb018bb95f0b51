package main

import "context"

// envelopeFigures are the figures of accepting envelopes.
type envelopeFigures struct {
	load      string // other load of the machine
	accept    accepts
	durable   durableAccepts
	paced     pacedAccepts
	redaction []figure
	hostile   []hostileRow
}

// envelopes measures the section.
func envelopes(ctx context.Context, r *report) (err error) {
	e := &r.envelopes
	e.load = busy()
	// First the measurement that counts memory of the whole process: no host and no log run yet.
	if e.accept, err = pipelineCost(ctx, r.options.seconds); err != nil {
		return err
	}
	e.redaction = redaction(r.options.seconds, r.options.tries())
	e.hostile = hostileSchemas(r.options.tries())
	if e.durable, err = durableRate(ctx, r.options); err != nil {
		return err
	}
	e.paced, err = paced(ctx, r.options)
	return err
}

// render writes the section.
func (e envelopeFigures) render(p func(string, ...any), tries int) {
	p("\n## Envelopes\n\nAccepted by the pipeline in this process with a log in memory, and by `waybill serve acceptor` with its own JetStream\n"+
		"server and an fsync before every acknowledgement. The machine's load average before: %s.\n\n", e.load)
	figures := e.accept.figures()
	figures = append(figures, e.durable.figures()...)
	figures = append(figures, e.paced.figures()...)
	figures = append(figures, e.redaction...)
	figures = append(figures, e.hostileFigure())
	figureTable(p, figures)
	p("\n### Distribution of single accepts\n\nIn the pipeline, wall time.\n\n")
	spreadTable(p, e.accept.wall)
	p("\nAt %d envelopes a second, from each due time until the outcome was on disk.\n\n", pace)
	spreadTable(p, e.paced.latency)
	p("\n### Hostile schemas\n\nRegistered as a kind, applied to a payload made for it, and projected for the costliest vendor; the minimum of %d tries. CPU is absolute, memory is a count.\n"+
		"Refused schemas have the same limits as accepted ones.\n\n", tries)
	hostileTable(p, e.hostile)
}

// hostileFigure summarises the table of hostile schemas in one row.
func (e envelopeFigures) hostileFigure() figure {
	worst, met := cost{}, true
	for _, row := range e.hostile {
		for _, c := range []cost{row.register, row.validate, row.project} {
			worst.cpu, worst.bytes = max(worst.cpu, c.cpu), max(worst.bytes, c.bytes)
		}
		met = met && row.met()
	}
	return figure{
		what:     "a hostile schema, registered, applied or projected, the worst of all",
		basis:    absolute,
		measured: worst.String(),
		target:   "≤ 50 ms and ≤ 16 MB",
		met:      met,
	}
}
