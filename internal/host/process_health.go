package host

import (
	"context"
	"errors"
	"os"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/probe"
)

// standing is where the process says why it does not serve.
func (h *Host) standing() *probe.Serving {
	if h.process != nil {
		return &h.process.serving
	}
	return &h.state
}

// readiness is what a service in a process of its own says of itself.
// own says what it lacks itself, and others which service it does not reach.
func (a *process) readiness(began time.Time, own, others func(context.Context) error) probe.Readiness {
	return probe.Readiness{
		Serving: &a.serving, Log: a.log,
		Check: func(ctx context.Context) error {
			return errors.Join(probe.Both(ctx, a.reads(own), others))
		},
		Changed: func(err error) { a.setHealth(probe.HealthOf(err)) },
		First:   func() error { return a.ready(began) },
	}
}

// reads looks at what is the service's own, and tells at once whether it can read: another one that
// is silent does not keep that from anybody.
func (a *process) reads(own func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (lacking error) {
		if own != nil {
			lacking = own(ctx)
		}
		a.health.SetServingStatus(probe.HealthOfReads, probe.HealthOf(lacking))
		return lacking
	}
}

// setHealth sets the status of the process, which has the empty name, and of the
// services that need what it needs.
func (a *process) setHealth(now healthv1.HealthCheckResponse_ServingStatus) {
	for _, name := range append(a.needs, "") {
		a.health.SetServingStatus(name, now)
	}
}

// ready tells where the service can be reached.
func (a *process) ready(began time.Time) error {
	info := ReadyInfo{HTTP: a.http, GRPC: a.lis.Addr().String(), Metrics: probe.MetricsURL(a.metrics), PID: os.Getpid(), ReadyMs: time.Since(began).Milliseconds()}
	if err := info.Write(a.opts.readyFile); err != nil {
		return err
	}
	a.log.Info("ready", "grpc", info.GRPC)
	return nil
}
