package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// callFigures are what the calls of a load took.
type callFigures struct {
	made, succeeded int
	// over is what was added around the double: before its first and after its last byte.
	over, before, after samples
	// whole also counts making the call: for a run, its creation.
	whole samples
	// first is from the first piece that the double sent to the first that was seen.
	first samples
	// late is how late the load client was.
	late samples
	// failure is one of those that failed, if any did.
	failure error
}

// success is the part that succeeded, in percent.
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

// take counts one call that succeeded.
func (f *callFigures) take(t trip, w openaicompat.Watched) {
	last := w.Writes[len(w.Writes)-1]
	before, after := w.Arrived.Sub(t.asked), t.answered.Sub(last)
	f.succeeded++
	f.before, f.after, f.over = append(f.before, before), append(f.after, after), append(f.over, before+after)
	f.whole = append(f.whole, t.answered.Sub(t.sent)-last.Sub(w.Arrived))
	if !t.first.IsZero() {
		f.first = append(f.first, t.first.Sub(w.Writes[1])) // the first write says only who speaks
	}
}

// modelCaller makes calls to a double.
type modelCaller struct {
	double   *modelDouble
	patience time.Duration
	calls    atomic.Int64
}

// call makes one call and joins what both ends saw.
func (c *modelCaller) call(ctx context.Context, ask asker) (trip, openaicompat.Watched, error) {
	id, told := c.double.expect(c.calls.Add(1))
	t, err := ask(ctx, id)
	if err != nil {
		c.double.waiting.Delete(id)
		return t, openaicompat.Watched{}, err
	}
	w, err := told(ctx, 1)
	if err != nil {
		return t, openaicompat.Watched{}, err
	}
	return t, w[0], nil
}

// paced makes n calls, rate a second, whatever the answers take.
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
