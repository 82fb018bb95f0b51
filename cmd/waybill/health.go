package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/lifecycle"
)

// standing is where the process says why it does not serve.
func (h *host) standing() *serving {
	if h.alone != nil {
		return &h.alone.serving
	}
	return &h.state
}

// readiness looks again and again at what a service lacks.
type readiness struct {
	serving *serving
	log     *slog.Logger
	// check says what the service lacks.
	check func(context.Context) error
	// changed is told when the service begins, or ceases, to be able to serve; nil: nobody.
	changed func(error)
	// first is called when it can serve for the first time.
	first func() error
}

// watch keeps it up to date until ctx ends: from then on the service is none to send calls to.
func (r readiness) watch(ctx context.Context) error {
	looked, ready := false, false
	for ctx.Err() == nil {
		err := within(ctx, r.check)
		if ctx.Err() != nil {
			break
		}
		before := r.serving.reason()
		r.serving.set(err)
		if !looked || (before == nil) != (err == nil) {
			looked = true
			r.tell(err)
		}
		if err == nil && !ready {
			ready = true
			if err := r.first(); err != nil {
				return err
			}
		}
		lifecycle.Wait(ctx, checkEvery)
	}
	r.serving.set(errEnding)
	if r.changed != nil {
		r.changed(errEnding)
	}
	return nil
}

func (r readiness) tell(err error) {
	if r.changed != nil {
		r.changed(err)
	}
	if err != nil {
		r.log.Warn("not serving", "error", err)
		return
	}
	r.log.Info("serving")
}

// readiness is what a service in a process of its own says of itself.
// own says what it lacks itself, and others which service it does not reach.
func (a *alone) readiness(began time.Time, own, others func(context.Context) error) readiness {
	return readiness{
		serving: &a.serving, log: a.log,
		check: func(ctx context.Context) error {
			return errors.Join(both(ctx, a.reads(own), others))
		},
		changed: func(err error) { a.setHealth(healthOf(err)) },
		first:   func() error { return a.ready(began) },
	}
}

// reads looks at what is the service's own, and tells at once whether it can read: another one that
// is silent does not keep that from anybody.
func (a *alone) reads(own func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (lacking error) {
		if own != nil {
			lacking = own(ctx)
		}
		a.health.SetServingStatus(healthOfReads, healthOf(lacking))
		return lacking
	}
}

// healthOf is how gRPC's health service tells that something is lacking; nil: nothing is.
func healthOf(lacking error) healthv1.HealthCheckResponse_ServingStatus {
	if lacking != nil {
		return healthv1.HealthCheckResponse_NOT_SERVING
	}
	return healthv1.HealthCheckResponse_SERVING
}

// setHealth sets the status of the process, which has the empty name, and of the
// services that need what it needs.
func (a *alone) setHealth(now healthv1.HealthCheckResponse_ServingStatus) {
	for _, name := range append(a.needs, "") {
		a.health.SetServingStatus(name, now)
	}
}

// ready tells where the service can be reached.
func (a *alone) ready(began time.Time) error {
	info := readyInfo{HTTP: a.http, GRPC: a.lis.Addr().String(), Metrics: metricsURL(a.metrics), PID: os.Getpid(), ReadyMs: time.Since(began).Milliseconds()}
	if err := info.write(a.opts.readyFile); err != nil {
		return err
	}
	a.log.Info("ready", "grpc", info.GRPC)
	return nil
}

// serving is why the service does not serve, as it was found last.
type serving struct{ why atomic.Pointer[error] }

var (
	errStarting = errors.New("it starts")
	errEnding   = errors.New("it ends")
)

func (s *serving) set(err error) { s.why.Store(&err) }

func (s *serving) reason() error { return *s.why.Load() }

// named is a reason by a name that may be told to anybody. What exactly failed, and at which
// address, is for the log.
type named struct {
	name string
	error
}

// Unwrap gives what exactly failed.
func (n named) Unwrap() error { return n.error }

// toAnybody is a reason as it may be told to anybody.
func toAnybody(err error) error {
	if n, ok := errors.AsType[named](err); ok {
		return errors.New(n.name)
	}
	return err
}

// gauge tells it as a metric.
func (s *serving) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Name: "serving", Help: "Whether the service has all that it needs: 1 or 0.",
	}, func() float64 {
		if s.reason() != nil {
			return 0
		}
		return 1
	})
}

// Times of the health checks.
const (
	checkEvery   = time.Second
	checkTimeout = 5 * time.Second
)

func within(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check(ctx)
}
