package probe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// Readiness looks again and again at what a service lacks.
type Readiness struct {
	Serving *Serving
	Log     *slog.Logger
	// Check says what the service lacks.
	Check func(context.Context) error
	// Changed is told when the service begins, or ceases, to be able to serve; nil: nobody.
	Changed func(error)
	// First is called when it can serve for the first time.
	First func() error
}

// Watch keeps it up to date until ctx ends: from then on the service is none to send calls to.
func (r Readiness) Watch(ctx context.Context) error {
	looked, ready := false, false
	for ctx.Err() == nil {
		err := Within(ctx, r.Check)
		if ctx.Err() != nil {
			break
		}
		before := r.Serving.Reason()
		r.Serving.Set(err)
		if !looked || (before == nil) != (err == nil) {
			looked = true
			r.tell(err)
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

func (r Readiness) tell(err error) {
	if r.Changed != nil {
		r.Changed(err)
	}
	if err != nil {
		r.Log.Warn("not serving", "error", err)
		return
	}
	r.Log.Info("serving")
}

// Times of the health checks.
const (
	CheckEvery   = time.Second
	checkTimeout = 5 * time.Second
)

func Within(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check(ctx)
}

// Both looks at what is a service's own and at the others at the same time: one that is silent
// leaves time for the rest.
func Both(ctx context.Context, own, others func(context.Context) error) (mine, theirs error) {
	var wg sync.WaitGroup
	if others != nil {
		wg.Go(func() { theirs = others(ctx) })
	}
	mine = own(ctx)
	wg.Wait()
	return mine, theirs
}
