// Package tracing exports the spans of runs over OTLP.
//
// The content of spans comes from the callers: it is derived from events or from the
// attributes of an accept, which are redacted. This package assigns ids, samples, batches
// and sends.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/wire"
)

// The supported protocols of OTLP.
const (
	HTTPProtobuf = "http/protobuf"
	HTTPJSON     = "http/json"
)

// Config is the destination of spans.
type Config struct {
	// Endpoint is the base URL of a collector, such as http://localhost:4318. Spans are
	// posted to /v1/traces below it.
	Endpoint string
	// Protocol is HTTPProtobuf or HTTPJSON.
	Protocol string
	// Ratio is the share of traces without a parent that are exported, 0 to 1. With a parent
	// its decision applies.
	Ratio float64
	// Service is service.name.
	Service string
}

// Validate reports every invalid value.
func (c Config) Validate() error {
	var errs []error
	if c.Protocol != HTTPProtobuf && c.Protocol != HTTPJSON {
		errs = append(errs, fmt.Errorf("otlp-protocol %q: must be %s or %s", c.Protocol, HTTPProtobuf, HTTPJSON))
	}
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		errs = append(errs, fmt.Errorf("trace-ratio %v: must be a number from 0 to 1", c.Ratio))
	}
	if c.Endpoint != "" {
		if _, err := tracesURL(c.Endpoint); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Exporter sends spans. It is safe for concurrent use and never blocks: it drops spans that
// the collector does not accept in time.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New makes an exporter. It connects with the first span. log gets a warning when the
// collector does not accept spans.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("otlp exporter: %w", err)
	}
	ratio := sdktrace.TraceIDRatioBased(cfg.Ratio)
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(loggingExporter{exporter, log}),
		sdktrace.WithSampler(sdktrace.ParentBased(ratio)),
		sdktrace.WithIDGenerator(spanIDs{}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", version.Version),
		)),
	)
	return &Exporter{provider: p, tracer: p.Tracer("waybill.dev/waybill"), sampler: ratio}, nil
}

// Close sends the remaining spans until ctx ends.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// Wants reports whether the spans of a run are exported: by the flag of the request's trace
// context if it has one, else by the ratio.
func (e *Exporter) Wants(rec *wire.RunRecord) bool {
	if rec.Traceparent != "" {
		return runspan.Sampled(rec.Traceparent)
	}
	id, _ := runspan.TraceOf(rec.RunID, "")
	return e.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: trace.TraceID(id)}).Decision == sdktrace.RecordAndSample
}

// Ended exports the spans of a run for which Wants is true.
func (e *Exporter) Ended(spans []*runspan.Span) {
	for _, s := range spans {
		e.export(s, true)
	}
}

// Accepted exports the span of an accept.
func (e *Exporter) Accepted(s *runspan.Span, sampled bool) { e.export(s, sampled) }

func (e *Exporter) export(s *runspan.Span, sampled bool) {
	ctx := withIDs(context.Background(), s)
	if s.Parent != (runspan.SpanID{}) {
		var flags trace.TraceFlags
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID:    trace.TraceID(s.Trace),
			SpanID:     trace.SpanID(s.Parent),
			TraceFlags: flags.WithSampled(sampled),
			Remote:     true,
		}))
	}
	_, span := e.tracer.Start(ctx, validUTF8(s.Name),
		trace.WithTimestamp(s.Start),
		trace.WithSpanKind(kinds[s.Kind]),
		trace.WithAttributes(attributes(s.Attributes)...),
		trace.WithLinks(links(s)...),
	)
	for _, m := range s.Events {
		span.AddEvent(m.Name, trace.WithTimestamp(m.At), trace.WithAttributes(attributes(m.Attributes)...))
	}
	span.SetStatus(statuses[s.Code], validUTF8(s.Message))
	end := s.End
	if end.Before(s.Start) { // the clocks of two machines differ
		end = s.Start
	}
	span.End(trace.WithTimestamp(end))
}

func links(s *runspan.Span) []trace.Link {
	out := make([]trace.Link, 0, len(s.Links))
	for _, l := range s.Links {
		out = append(out, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(l.Trace),
			SpanID:  trace.SpanID(l.ID),
			Remote:  true,
		})})
	}
	return out
}

var kinds = map[runspan.Kind]trace.SpanKind{
	runspan.KindInternal: trace.SpanKindInternal,
	runspan.KindServer:   trace.SpanKindServer,
	runspan.KindClient:   trace.SpanKindClient,
}

var statuses = map[runspan.Code]codes.Code{runspan.Unset: codes.Unset, runspan.OK: codes.Ok, runspan.Error: codes.Error}

// attributes converts attributes, sorted by name. Values of unsupported types are left out.
func attributes(from map[string]any) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(from))
	for name, v := range from {
		switch v := v.(type) {
		case string:
			out = append(out, attribute.String(name, validUTF8(v)))
		case int64:
			out = append(out, attribute.Int64(name, v))
		case float64:
			out = append(out, attribute.Float64(name, v))
		case bool:
			out = append(out, attribute.Bool(name, v))
		case []string:
			list := make([]string, 0, len(v))
			for _, s := range v {
				list = append(list, validUTF8(s))
			}
			out = append(out, attribute.StringSlice(name, list))
		}
	}
	slices.SortFunc(out, func(a, b attribute.KeyValue) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return out
}

// validUTF8 replaces invalid UTF-8, which Protobuf rejects with the whole batch.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// loggingExporter logs export errors and does not return them.
type loggingExporter struct {
	sdktrace.SpanExporter

	log *slog.Logger
}

// ExportSpans sends a batch. The log has a fixed reason instead of the error, since the
// answer of a collector can contain anything.
func (q loggingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	began := time.Now()
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil {
		q.log.Warn("spans were not exported", "spans", len(spans), "took", time.Since(began), "reason", reason(err))
	}
	return nil
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the collector did not answer in time"
	}
	return "the collector is unreachable or refused them"
}
