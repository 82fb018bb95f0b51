package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/lifecycle"
)

// watch keeps the health status true until ctx ends, and writes the ready file
// when the service can serve for the first time. check says what it lacks; nil:
// it needs nothing.
func (a *alone) watch(ctx context.Context, began time.Time, check func(context.Context) error) error {
	var (
		last  = healthv1.HealthCheckResponse_UNKNOWN
		ready bool
	)
	for {
		var err error
		if check != nil {
			err = within(ctx, check)
		}
		if ctx.Err() != nil {
			return nil
		}
		a.serving.set(err)
		now := healthv1.HealthCheckResponse_SERVING
		if err != nil {
			now = healthv1.HealthCheckResponse_NOT_SERVING
		}
		if now != last {
			a.setHealth(now)
			a.told(now, err)
			last = now
		}
		if err == nil && !ready {
			ready = true
			if err := a.ready(began); err != nil {
				return err
			}
		}
		if !lifecycle.Wait(ctx, checkEvery) {
			return nil
		}
	}
}

// setHealth sets the status of the process, which has the empty name, and of the
// services that need what it needs.
func (a *alone) setHealth(now healthv1.HealthCheckResponse_ServingStatus) {
	for _, name := range append(a.needs, "") {
		a.health.SetServingStatus(name, now)
	}
}

// told logs a change of the health status.
func (a *alone) told(now healthv1.HealthCheckResponse_ServingStatus, err error) {
	if err != nil {
		a.log.Warn("not serving", "error", err)
		return
	}
	a.log.Info("serving", "status", now.String())
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

var errStarting = errors.New("it starts")

func (s *serving) set(err error) { s.why.Store(&err) }

func (s *serving) reason() error { return *s.why.Load() }

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
