package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// callFigures are the latencies of a load's calls.
type callFigures struct {
	made, succeeded int
	// over is the time added to the double's: before its first and after its last byte.
	over, before, after samples
	// whole includes making the call: for a run, its creation.
	whole samples
	// first is the time from the double's first piece to its arrival.
	first samples
	// late is the lateness of the load client.
	late samples
	// failure is one of the failures, if any.
	failure error
}

// success is the success rate in percent.
func (f callFigures) success() float64 { return 100 * float64(f.succeeded) / float64(max(f.made, 1)) }

func (f *callFigures) add(g callFigures) {
	f.made, f.succeeded = f.made+g.made, f.succeeded+g.succeeded
	for _, s := range []struct {
		to   *samples
		from samples
	}{{&f.over, g.over}, {&f.before, g.before}, {&f.after, g.after}, {&f.whole, g.whole}, {&f.first, g.first}, {&f.late, g.late}} {
		*s.to = append(*s.to, s.from...).sorted()
	}
	if g.failure != nil {
		f.failure = g.failure
	}
}

// take adds one successful call.
func (f *callFigures) take(t trip, w openaicompat.Watched) {
	last := w.Writes[len(w.Writes)-1]
	before, after := w.Arrived.Sub(t.asked), t.answered.Sub(last)
	f.succeeded++
	f.before, f.after, f.over = append(f.before, before), append(f.after, after), append(f.over, before+after)
	f.whole = append(f.whole, t.answered.Sub(t.sent)-last.Sub(w.Arrived))
	if !t.first.IsZero() {
		f.first = append(f.first, t.first.Sub(w.Writes[1])) // the first write has only the role
	}
}

// modelCaller makes calls to a double.
type modelCaller struct {
	double   *modelDouble
	patience time.Duration
	calls    atomic.Int64
}

// call makes one call and combines the records of both ends.
func (c *modelCaller) call(ctx context.Context, ask asker) (trip, openaicompat.Watched, error) {
	id, seen := c.double.expect(c.calls.Add(1))
	t, err := ask(ctx, id)
	if err != nil {
		c.double.waiting.Delete(id)
		return t, openaicompat.Watched{}, err
	}
	w, err := seen(ctx, 1)
	if err != nil {
		return t, openaicompat.Watched{}, err
	}
	return t, w[0], nil
}

// paced makes n calls at a fixed rate, independent of the answers.
func (c *modelCaller) paced(ctx context.Context, ask asker, rate, n int, how answers) (callFigures, error) {
	c.double.answersLike(how)
	allowed := c.patience + how.wait + time.Duration(how.pieces)*how.interval
	var (
		mu  sync.Mutex
		out = callFigures{made: n}
	)
	_, late, err := drive(ctx, time.Second/time.Duration(rate), n, func(time.Time) error {
		ctx, cancel := context.WithTimeoutCause(ctx, allowed, fmt.Errorf("no answer within %s", allowed))
		defer cancel()
		t, w, err := c.call(ctx, ask)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			out.failure = err
			return nil
		}
		out.take(t, w)
		return nil
	})
	out.late = late
	for _, s := range []samples{out.over, out.before, out.after, out.whole, out.first, out.late} {
		s.sorted()
	}
	return out, err
}
