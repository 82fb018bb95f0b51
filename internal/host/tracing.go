package host

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/obs/tracing"
)

// Tracing configures the export of spans.
type Tracing struct {
	// Endpoint is the URL of a collector; empty disables the export.
	Endpoint, Protocol string
	// Ratio is the share of exported traces among requests without a sampling decision.
	Ratio float64
}

// defaultRatio follows OpenWOP host contract §10.1.
const defaultRatio = 0.1

// DefaultTracing are the settings without flags.
func DefaultTracing() Tracing { return Tracing{Protocol: tracing.HTTPProtobuf, Ratio: defaultRatio} }

func (o *Tracing) validate() error {
	if err := o.config("waybill").Validate(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func (o *Tracing) config(service string) tracing.Config {
	return tracing.Config{Endpoint: o.Endpoint, Protocol: o.Protocol, Ratio: o.Ratio, Service: service}
}

// flushTimeout limits the export of the remaining spans at shutdown.
const flushTimeout = 5 * time.Second

// exporter creates the exporter, closed by later; nil if the export is disabled.
func (o *Tracing) exporter(ctx context.Context, service string, log *slog.Logger, later func(func())) (*tracing.Exporter, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	x, err := tracing.New(ctx, o.config(service), log)
	if err != nil {
		return nil, err
	}
	later(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = x.Close(ctx) // an unavailable collector must not delay the shutdown
	})
	return x, nil
}
