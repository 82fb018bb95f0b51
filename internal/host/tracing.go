package host

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/obs/tracing"
)

// Tracing says where spans go.
type Tracing struct {
	// Endpoint is the URL of a collector; empty: nothing is exported.
	Endpoint, Protocol string
	// Ratio is the share of traces that are exported where the request does not say.
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

// flushTimeout bounds sending what is left at the end.
const flushTimeout = 5 * time.Second

// exporter makes the exporter, which later closes; nil: nothing is exported.
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
		_ = x.Close(ctx) // a collector that is away must not hold up the end
	})
	return x, nil
}
