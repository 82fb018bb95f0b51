package main

import (
	"context"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
)

// durableAccepts compares synced envelopes with appends to the log alone.
type durableAccepts struct {
	accepts, appends float64 // a second
	// CPU of the acceptor's process per envelope, and of the log's per append.
	acceptCPU, appendCPU time.Duration
	last                 result
}

// rounds is the number of alternations, so that other load affects both.
const rounds = 3

// durableRate sends envelopes from many writers, then appends as many frames of the same size to
// the log alone.
func durableRate(ctx context.Context, o options) (durableAccepts, error) {
	var out durableAccepts
	a, err := serveAcceptor(ctx, o)
	if err != nil {
		return out, err
	}
	defer a.stop()
	log, err := openLog(ctx, o.dir, true)
	if err != nil {
		return out, err
	}
	defer log.stop()
	before, err := a.proc()
	if err != nil {
		return out, err
	}
	alone := appenders(log.Log)
	appended, took, spent := 0, time.Duration(0), time.Duration(0)
	for range rounds {
		if out.last, err = load(ctx, writers, o.seconds/rounds, a.accept); err != nil {
			return out, err
		}
		out.accepts += out.last.PerSec / rounds
		taken := len(out.last.All)
		began, cpu := time.Now(), processCPU()
		n, err := crowd(writers, func(w int) (int, error) {
			share := (taken + w) / writers
			for range share {
				if err := alone[w].append(ctx); err != nil {
					return 0, err
				}
			}
			return share, nil
		})
		if err != nil {
			return out, err
		}
		appended, took, spent = appended+n, took+time.Since(began), spent+processCPU()-cpu
	}
	after, err := a.proc()
	if err != nil {
		return out, err
	}
	out.acceptCPU = (after.cpu - before.cpu) / time.Duration(a.taken.Load())
	out.appends = float64(appended) / took.Seconds()
	out.appendCPU = spent / time.Duration(max(appended, 1))
	return out, nil
}

// appender writes the frames of accepted envelopes to the log alone, with a new run after every
// perRun of them.
type appender struct {
	log  accept.Log
	name string
	run  subject.Run
	head frame.Head
	n    int
}

func (a *appender) append(ctx context.Context) (err error) {
	if a.n%perRun == 0 {
		a.run = benchRun(fmt.Sprintf("%s-%d", a.name, a.n/perRun))
		if a.head, err = beginRun(ctx, a.log, a.run); err != nil {
			return err
		}
	}
	artifact := wire.Draft{
		Type: wire.EventArtifactCreated, NodeID: "ask", CausationID: fmt.Sprintf("corr-%04d", a.n%perRun),
		Payload: []byte(`{"artifactId":"env-corr-0000","artifactType":"` + accepttest.Kind + `","nodeId":"ask","version":"1","payload":` + accepttest.Payload() + `}`),
	}
	f := frame.New(a.run, subject.Step, a.head, []wire.Event{artifact.Place(a.run.RunID, a.head.Next, time.Now())})
	if f.Pos, err = a.log.Append(ctx, f, a.head.Pos); err != nil {
		return err
	}
	a.head, a.n = f.Head(), a.n+1
	return nil
}

// appenders returns as many appenders as the acceptor has callers.
func appenders(log accept.Log) []*appender {
	all := make([]*appender, writers)
	for i := range all {
		all[i] = &appender{log: log, name: fmt.Sprintf("a%d", i)}
	}
	return all
}

func (d durableAccepts) figures() []figure {
	return []figure{
		{
			what:     fmt.Sprintf("envelopes accepted and on disk, %d writers", writers),
			basis:    absolute,
			measured: fmt.Sprintf("%.0f/s", d.accepts),
			target:   "≥ 2,000/s",
			met:      d.accepts >= 2000,
			ceiling:  fmt.Sprintf("appends by the log alone: %.0f/s", d.appends),
		},
		{
			what:     "… of the log's own rate",
			basis:    ratio,
			measured: fmt.Sprintf("%.0f %%", 100*d.accepts/d.appends),
			ceiling:  "100 %",
		},
		{
			what:     "… CPU of the acceptor's process per envelope",
			basis:    absolute,
			measured: short(d.acceptCPU),
			ceiling:  "of the log per append: " + short(d.appendCPU),
		},
		{
			what:     "… relative to the log's",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(d.acceptCPU)/float64(d.appendCPU)),
			ceiling:  "1×",
		},
		{
			what:     "… one accept under this load, p50 and p99",
			basis:    absolute,
			measured: short(d.last.P50) + ", " + short(d.last.P99),
		},
	}
}
