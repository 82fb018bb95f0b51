package host

import (
	"context"
	"errors"
	"os"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/probe"
)

// readiness checks the service. own checks the service itself, others the services it calls; both may
// be nil.
func (p *process) readiness(own, others func(context.Context) error) probe.Readiness {
	return probe.Readiness{
		Serving: &p.serving, Log: p.log,
		Check: func(ctx context.Context) error {
			return errors.Join(probe.Both(ctx, p.reads(own), others))
		},
		Changed: func(err error) { p.setHealth(probe.HealthOf(err)) },
		First:   func() error { return p.ready() },
	}
}

// reads runs own and publishes the health of reads immediately, so that a silent peer cannot delay it.
func (p *process) reads(own func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (lacking error) {
		if own != nil {
			lacking = own(ctx)
		}
		p.health.SetServingStatus(probe.HealthOfReads, probe.HealthOf(lacking))
		return lacking
	}
}

// setHealth sets the status of the process, whose name is empty, and of the services with the same
// dependencies.
func (p *process) setHealth(now healthv1.HealthCheckResponse_ServingStatus) {
	for _, name := range append(p.needs, "") {
		p.health.SetServingStatus(name, now)
	}
}

// ready publishes the addresses of the service.
func (p *process) ready() error {
	info := Addresses{
		HTTP:    p.assetsURL,
		GRPC:    p.lis.Addr().String(),
		Metrics: probe.MetricsURL(p.metrics),
		PID:     os.Getpid(),
		ReadyMs: time.Since(p.began).Milliseconds(),
	}
	if err := info.Write(p.opts.ReadyFile); err != nil {
		return err
	}
	p.log.Info("ready", "grpc", info.GRPC)
	return nil
}
