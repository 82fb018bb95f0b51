// Package tracing exports the spans of runs over OTLP.
//
// What a span says was decided elsewhere: it is folded from events, or from the
// facts of an accept, all of which have passed the redactor and hold no content.
// Here it gets its ids, is sampled, batched and sent.
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

	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/wire"
)

// Protocols of OTLP that spans can be sent with.
const (
	HTTPProtobuf = "http/protobuf"
	HTTPJSON     = "http/json"
)

// Config says where spans go.
type Config struct {
	// Endpoint is the base URL of a collector, such as http://localhost:4318; spans
	// are posted to /v1/traces below it.
	Endpoint string
	// Protocol is HTTPProtobuf or HTTPJSON.
	Protocol string
	// Ratio of the traces without a sampled parent that are exported, 0 to 1. A
	// parent's own decision is followed.
	Ratio float64
	// Service is service.name.
	Service string
}

// Validate names everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Protocol != HTTPProtobuf && c.Protocol != HTTPJSON {
		errs = append(errs, fmt.Errorf("otlp-protocol %q: want %s or %s", c.Protocol, HTTPProtobuf, HTTPJSON))
	}
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		errs = append(errs, fmt.Errorf("trace-ratio %v: want a number from 0 to 1", c.Ratio))
	}
	if c.Endpoint != "" {
		if _, err := tracesURL(c.Endpoint); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Exporter sends spans. It is safe for concurrent use and never blocks: spans that
// a collector cannot take in time are dropped.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New makes an exporter; nothing is sent before the first span. log is told when a
// collector does not take spans.
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
		sdktrace.WithBatcher(quiet{exporter, log}),
		sdktrace.WithSampler(sdktrace.ParentBased(ratio)),
		sdktrace.WithIDGenerator(given{}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", version.Version),
		)),
	)
	return &Exporter{provider: p, tracer: p.Tracer("waybill.dev/waybill"), sampler: ratio}, nil
}

// Close sends what is left, as far as ctx allows.
func (x *Exporter) Close(ctx context.Context) error { return x.provider.Shutdown(ctx) }

// Wants reports whether the spans of a run are exported: as the request's trace
// says if it has one, else by the ratio.
func (x *Exporter) Wants(rec *wire.RunRecord) bool {
	if rec.Traceparent != "" {
		return runspan.Sampled(rec.Traceparent)
	}
	id, _ := runspan.TraceOf(rec.RunID, "")
	return x.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: trace.TraceID(id)}).Decision == sdktrace.RecordAndSample
}

// Ended takes spans of a run that is wanted.
func (x *Exporter) Ended(spans []*runspan.Span) {
	for _, s := range spans {
		x.export(s, true)
	}
}

// Accepted takes the span of an accept.
func (x *Exporter) Accepted(s *runspan.Span, sampled bool) { x.export(s, sampled) }

func (x *Exporter) export(s *runspan.Span, sampled bool) {
	ctx := withIDs(context.Background(), s)
	if s.Parent != (runspan.SpanID{}) {
		var flags trace.TraceFlags
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(s.Trace), SpanID: trace.SpanID(s.Parent), TraceFlags: flags.WithSampled(sampled), Remote: true,
		}))
	}
	_, span := x.tracer.Start(ctx, valid(s.Name), trace.WithTimestamp(s.Start), trace.WithSpanKind(kinds[s.Kind]), trace.WithAttributes(attributes(s.Attributes)...), trace.WithLinks(links(s)...))
	for _, m := range s.Events {
		span.AddEvent(m.Name, trace.WithTimestamp(m.At), trace.WithAttributes(attributes(m.Attributes)...))
	}
	span.SetStatus(statuses[s.Code], valid(s.Message))
	end := s.End
	if end.Before(s.Start) { // clocks of two machines
		end = s.Start
	}
	span.End(trace.WithTimestamp(end))
}

func links(s *runspan.Span) []trace.Link {
	out := make([]trace.Link, 0, len(s.Links))
	for _, l := range s.Links {
		out = append(out, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(l.Trace), SpanID: trace.SpanID(l.ID), Remote: true})})
	}
	return out
}

var kinds = map[runspan.Kind]trace.SpanKind{
	runspan.KindInternal: trace.SpanKindInternal, runspan.KindServer: trace.SpanKindServer, runspan.KindClient: trace.SpanKindClient,
}

var statuses = map[runspan.Code]codes.Code{runspan.Unset: codes.Unset, runspan.OK: codes.Ok, runspan.Error: codes.Error}

// attributes translates, sorted by name. A value of a type that spans cannot hold
// is left out.
func attributes(from map[string]any) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(from))
	for name, v := range from {
		switch v := v.(type) {
		case string:
			out = append(out, attribute.String(name, valid(v)))
		case int64:
			out = append(out, attribute.Int64(name, v))
		case float64:
			out = append(out, attribute.Float64(name, v))
		case bool:
			out = append(out, attribute.Bool(name, v))
		case []string:
			list := make([]string, 0, len(v))
			for _, s := range v {
				list = append(list, valid(s))
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

// valid keeps one span's broken text from costing the batch: Protobuf takes UTF-8
// only.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// quiet logs what goes wrong while exporting; a run never notices.
type quiet struct {
	sdktrace.SpanExporter

	log *slog.Logger
}

// ExportSpans sends a batch. The error's text is kept to the log's own words: a
// collector's answer can hold anything.
func (q quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	began := time.Now()
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil {
		q.log.Warn("spans were not taken", "spans", len(spans), "took", time.Since(began), "reason", reason(err))
	}
	return nil
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the collector did not answer in time"
	}
	return "the collector cannot be reached, or refused them"
}
