// Package tracing exports the spans of runs and of calls.
//
// The content of spans comes from the callers: it is derived from events or from the
// attributes of an accept, which are redacted. This package assigns ids and samples; package
// telemetry batches and sends.
package tracing

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/wire"
)

// Config is which spans are exported, and what they contain.
type Config struct {
	// Sampler decides about each trace.
	Sampler sdktrace.Sampler
	// Content adds the texts of model calls to their spans, as the log has them.
	Content bool
}

// Exporter sends spans. It is safe for concurrent use and never blocks: it drops spans that
// the collector does not accept in time.
type Exporter struct {
	cfg      Config
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New makes an exporter. options have the destinations and the resource.
func New(cfg Config, options ...sdktrace.TracerProviderOption) *Exporter {
	p := sdktrace.NewTracerProvider(append(options,
		sdktrace.WithSampler(decidedSampler{cfg.Sampler}),
		sdktrace.WithIDGenerator(spanIDs{}),
	)...)
	return &Exporter{cfg: cfg, provider: p, tracer: p.Tracer("waybill.dev/waybill", trace.WithInstrumentationVersion(version.Version))}
}

// decidedSampler exports the spans of a run that was decided about as a whole. Others are decided
// one by one.
type decidedSampler struct{ sdktrace.Sampler }

// ShouldSample implements Sampler.
func (s decidedSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if own, ok := p.ParentContext.Value(idsKey{}).(spanKey); ok && own.decided {
		return sdktrace.SamplingResult{
			Decision:   sdktrace.RecordAndSample,
			Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState(),
		}
	}
	return s.Sampler.ShouldSample(p)
}

// Close sends the remaining spans until ctx ends.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// Wants reports whether the spans of a run are exported. The sampler decides about the run's own
// span, and all others follow it.
func (e *Exporter) Wants(rec *wire.RunRecord) bool {
	id, parent := runspan.TraceOf(rec.RunID, rec.Traceparent)
	return e.cfg.Sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: under(context.Background(), id, parent, runspan.Sampled(rec.Traceparent)),
		TraceID:       trace.TraceID(id),
		Name:          runspan.NameRun,
		Kind:          trace.SpanKindInternal,
	}).Decision == sdktrace.RecordAndSample
}

// Content reports whether spans have the texts of model calls.
func (e *Exporter) Content() bool { return e.cfg.Content }

// under returns a context with a remote parent; ctx itself without one.
func under(ctx context.Context, id runspan.TraceID, parent runspan.SpanID, sampled bool) context.Context {
	if parent == (runspan.SpanID{}) {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID(id),
		SpanID:     trace.SpanID(parent),
		TraceFlags: trace.TraceFlags(0).WithSampled(sampled),
		Remote:     true,
	}))
}

// WithSpanContext adds the trace context of a call in the form of OpenTelemetry, for log records.
func WithSpanContext(ctx context.Context) context.Context {
	parent := runspan.Of(ctx)
	if parent == "" {
		return ctx
	}
	id, span := runspan.TraceOf("", parent)
	return under(ctx, id, span, runspan.Sampled(parent))
}

// Ended exports the spans of a run for which Wants is true.
func (e *Exporter) Ended(spans []*runspan.Span) {
	for _, s := range spans {
		e.export(s, true, true)
	}
}

// Accepted exports the span of an accept, if the sampler selects it. sampled is the flag of its parent.
func (e *Exporter) Accepted(s *runspan.Span, sampled bool) { e.export(s, sampled, false) }

// export exports a span. decided: its run is exported.
func (e *Exporter) export(s *runspan.Span, sampled, decided bool) {
	ctx := under(withIDs(context.Background(), s, decided), s.Trace, s.Parent, sampled)
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
