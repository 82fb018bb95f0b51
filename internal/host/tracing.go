package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/obs/tracing"
)

// tracingOptions say where spans go.
type tracingOptions struct {
	endpoint, protocol string
	ratio              float64
}

// defaultRatio is the share of traces that are exported by default, where the
// request does not say (OpenWOP host contract §10.1).
const defaultRatio = 0.1

func (o *tracingOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector to send spans to, such as http://localhost:4318; empty: nowhere")
	f.StringVar(&o.protocol, "otlp-protocol", tracing.HTTPProtobuf, "http/protobuf or http/json")
	f.Float64Var(&o.ratio, "trace-ratio", defaultRatio, "share of the traces to send, 0 to 1, for requests that do not say themselves")
}

func (o *tracingOptions) config(service string) tracing.Config {
	c := tracing.Config{Endpoint: o.endpoint, Protocol: o.protocol, Ratio: o.ratio, Service: service}
	if c.Protocol == "" {
		c.Protocol = tracing.HTTPProtobuf
	}
	return c
}

// flushTimeout bounds sending what is left at the end.
const flushTimeout = 5 * time.Second

// exporter makes the exporter, which later closes; nil: nothing is exported.
func (o *tracingOptions) exporter(ctx context.Context, service string, log *slog.Logger, later func(func())) (*tracing.Exporter, error) {
	if o.endpoint == "" {
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
