// Package lifecycle runs the parts of a process: started in order, stopped in
// reverse, and the first part that fails ends them all.
package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Part is a component that runs until it is stopped.
type Part struct {
	Name string
	// Run works until ctx ends. Its error, unless it is the context's, ends the process.
	Run func(ctx context.Context) error
	// Quiesce, if set, is called as soon as the group starts to stop, before any part is stopped:
	// the part accepts no new work. It must not block.
	Quiesce func()
	// Stop, if set, is called before Run's context ends, so that the part can finish its work until
	// ctx ends.
	Stop func(ctx context.Context)
	// StopWithin is that deadline; 0 means StopTimeout.
	StopWithin time.Duration
}

// StopTimeout is the default time for a part to finish its work, and the time for it to end after
// that.
const StopTimeout = 5 * time.Second

// Group runs parts. The zero value is ready to use; not safe for concurrent use.
type Group struct{ parts []*running }

type running struct {
	part   Part
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start starts a part. It is stopped before all parts started earlier.
func (g *Group) Start(p Part) {
	// Not a child of a caller's context, because parts stop in order, one by one.
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{part: p, cancel: cancel, done: make(chan struct{})}
	g.parts = append(g.parts, r)
	go func() {
		defer close(r.done)
		if err := p.Run(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
			r.err = fmt.Errorf("%s: %w", p.Name, err)
		}
	}()
}

// Wait blocks until ctx ends or a part ends by itself, then stops all parts in reverse order. It
// returns the error of the first part that failed.
func (g *Group) Wait(ctx context.Context) error {
	ended := make(chan *running, len(g.parts))
	var wg sync.WaitGroup
	quit := make(chan struct{})
	for _, r := range g.parts {
		wg.Go(func() {
			select {
			case <-r.done:
				ended <- r
			case <-quit:
			}
		})
	}
	var first error
	select {
	case <-ctx.Done():
	case r := <-ended:
		first = r.err
		if first == nil {
			first = fmt.Errorf("%s ended by itself", r.part.Name)
		}
	}
	close(quit)
	wg.Wait()
	return errors.Join(first, g.Stop())
}

// Stop stops all parts in reverse order and returns their errors. It may be called without a start,
// and repeatedly.
func (g *Group) Stop() error {
	var errs []error
	for i := len(g.parts) - 1; i >= 0; i-- {
		if quiesce := g.parts[i].part.Quiesce; quiesce != nil {
			quiesce()
		}
	}
	for i := len(g.parts) - 1; i >= 0; i-- {
		errs = append(errs, g.parts[i].stop())
	}
	g.parts = nil
	return errors.Join(errs...)
}

func (r *running) stop() error {
	select {
	case <-r.done: // it has already ended
		r.cancel()
		return nil
	default:
	}
	if r.part.Stop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.part.StopWithin, StopTimeout))
		r.part.Stop(ctx)
		cancel()
	}
	r.cancel()
	select {
	case <-r.done:
		return r.err
	case <-time.After(StopTimeout):
		return fmt.Errorf("%s did not stop within %s", r.part.Name, StopTimeout)
	}
}
