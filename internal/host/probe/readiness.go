package probe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// Readiness checks every second whether a service can serve.
type Readiness struct {
	Serving *Serving
	Log     *slog.Logger
	// Check returns why the service is not ready; nil if it is.
	Check func(context.Context) error
	// Changed is called when readiness changes; nil disables it.
	Changed func(error)
	// First is called when the service is ready for the first time.
	First func() error
}

// Watch keeps Serving up to date until ctx ends. After that the service counts as not serving.
func (r Readiness) Watch(ctx context.Context) error {
	checked, ready := false, false
	for ctx.Err() == nil {
		err := within(ctx, r.Check)
		if ctx.Err() != nil {
			break
		}
		before := r.Serving.Reason()
		r.Serving.Set(err)
		if !checked || (before == nil) != (err == nil) {
			r.report(err, checked)
			checked = true
		}
		if err == nil && !ready {
			ready = true
			if err := r.First(); err != nil {
				return err
			}
		}
		lifecycle.Wait(ctx, CheckEvery)
	}
	r.Serving.Set(errEnding)
	if r.Changed != nil {
		r.Changed(errEnding)
	}
	return nil
}

// report reports a change. again means that an earlier one was reported.
func (r Readiness) report(err error, again bool) {
	if r.Changed != nil {
		r.Changed(err)
	}
	switch {
	case err != nil:
		r.Log.Warn("not serving", "error", err)
	case again:
		r.Log.Warn("serving") // at the level of the warning that it ends
	default:
		r.Log.Info("serving")
	}
}

// Times of the health checks.
const (
	CheckEvery   = time.Second
	checkTimeout = 5 * time.Second
)

func within(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check(ctx)
}

// Both checks the service and the other services concurrently, so that a silent service does not delay
// the rest. others may be nil.
func Both(ctx context.Context, own, others func(context.Context) error) (ownErr, othersErr error) {
	var wg sync.WaitGroup
	if others != nil {
		wg.Go(func() { othersErr = others(ctx) })
	}
	ownErr = own(ctx)
	wg.Wait()
	return ownErr, othersErr
}
