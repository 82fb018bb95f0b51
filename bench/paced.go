package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pacedAccepts are latencies under a load below capacity.
type pacedAccepts struct {
	// latency counts from the due time of the envelope.
	latency samples
	// late is the lateness of the load client.
	late samples
	// fsync is measured on the same disk, before and after.
	fsync samples
	// alone is the latency of one append to the log alone at the same rate.
	alone samples
}

// pace is the number of envelopes per second.
const pace = 200

// paced sends envelopes at fixed times, independent of the answers, so that a slow answer does not
// hide the delay of others.
func paced(ctx context.Context, o options) (pacedAccepts, error) {
	var out pacedAccepts
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
	if out.fsync, err = fsyncs(o.dir, o.fsyncs()); err != nil {
		return out, err
	}
	free := make(chan *appender, writers)
	for _, w := range appenders(log.Log) { // open the runs and connections
		if err := errors.Join(a.accept(ctx), w.append(ctx)); err != nil {
			return out, err
		}
		free <- w
	}
	for range rounds {
		n := max(1, int(o.seconds.Seconds()*pace/rounds))
		latency, late, err := drive(ctx, time.Second/pace, n, func(time.Time) error { return a.accept(ctx) })
		if err != nil {
			return out, err
		}
		alone, _, err := drive(ctx, time.Second/pace, n, func(time.Time) error {
			w := <-free
			defer func() { free <- w }()
			return w.append(ctx)
		})
		if err != nil {
			return out, err
		}
		out.latency, out.late, out.alone = append(out.latency, latency...), append(out.late, late...), append(out.alone, alone...)
	}
	after, err := fsyncs(o.dir, o.fsyncs())
	out.fsync = append(out.fsync, after...)
	for _, s := range []samples{out.latency, out.late, out.alone, out.fsync} {
		s.sorted()
	}
	return out, err
}

// drive calls do n times, once per period. latency counts from a call's due time; late is how late
// it was made.
func drive(ctx context.Context, period time.Duration, n int, do func(due time.Time) error) (latency, late samples, err error) {
	latency, late = make(samples, n), make(samples, n)
	failed := make([]error, n)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(i) * period)
		select {
		case <-ctx.Done():
			wg.Wait()
			return nil, nil, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		late[i] = time.Since(due)
		wg.Go(func() {
			failed[i] = do(due)
			latency[i] = time.Since(due)
		})
	}
	wg.Wait()
	return latency, late, errors.Join(failed...)
}

func (p pacedAccepts) figures() []figure {
	p99, disk := p.latency.percentile(99), p.fsync.percentile(99)
	const room = 10 * time.Millisecond
	return []figure{
		{
			what:     fmt.Sprintf("one accept at %d/s, from its due time, p50", pace),
			basis:    absolute,
			measured: short(p.latency.percentile(50)),
			ceiling:  "an fsync: " + short(p.fsync.percentile(50)),
		},
		{
			what:     "… p99",
			basis:    absolute,
			measured: short(p99),
			target:   "≤ fsync p99 + 10 ms = " + short(disk+room),
			met:      p99 <= disk+room,
			ceiling:  "an fsync: " + short(disk),
		},
		{
			what:     "… p99 relative to an fsync's",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(p99)/float64(disk)),
			ceiling:  "1×",
		},
		{
			what:     "… p99 relative to the log alone at the same rate",
			basis:    ratio,
			measured: fmt.Sprintf("%.1f×", float64(p99)/float64(p.alone.percentile(99))),
			ceiling:  "one append: " + short(p.alone.percentile(99)),
		},
		{
			what:     "… lateness of the load client, p99",
			basis:    absolute,
			measured: short(p.late.percentile(99)),
		},
	}
}
