package tracing

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"waybill.dev/waybill/internal/obs/runspan"
)

type idsKey struct{}

// spanKey is a span that is exported. decided: its run is exported.
type spanKey struct {
	*runspan.Span

	decided bool
}

// withIDs passes the ids of a span to the SDK.
func withIDs(ctx context.Context, s *runspan.Span, decided bool) context.Context {
	return context.WithValue(ctx, idsKey{}, spanKey{s, decided})
}

func spanOf(ctx context.Context) *runspan.Span {
	s, _ := ctx.Value(idsKey{}).(spanKey)
	return s.Span
}

// spanIDs is an id generator for the SDK. It returns a span's own ids. A span without an id
// gets a random one.
type spanIDs struct{}

// NewIDs returns both ids of a root span.
func (g spanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s := spanOf(ctx)
	if s == nil {
		return random[trace.TraceID](), random[trace.SpanID]()
	}
	return trace.TraceID(s.Trace), g.NewSpanID(ctx, trace.TraceID(s.Trace))
}

// NewSpanID returns the id of a span with a parent.
func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s := spanOf(ctx)
	if s == nil || s.ID == (runspan.SpanID{}) {
		return random[trace.SpanID]()
	}
	return trace.SpanID(s.ID)
}

func random[T trace.TraceID | trace.SpanID]() T {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	var id T
	switch p := any(&id).(type) {
	case *trace.TraceID:
		copy(p[:], b[:])
	case *trace.SpanID:
		copy(p[:], b[:])
	}
	return id
}
