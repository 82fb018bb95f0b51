package tracing

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"waybill.dev/waybill/protocol/runspan"
)

type idsKey struct{}

// withIDs carries the ids of a span to the SDK.
func withIDs(ctx context.Context, s *runspan.Span) context.Context {
	return context.WithValue(ctx, idsKey{}, s)
}

// given gives each span the ids it has. A span without an id of its own gets a
// random one.
type given struct{}

// NewIDs gives both ids of a root span.
func (g given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s, _ := ctx.Value(idsKey{}).(*runspan.Span)
	if s == nil {
		return random[trace.TraceID](), random[trace.SpanID]()
	}
	return trace.TraceID(s.Trace), g.NewSpanID(ctx, trace.TraceID(s.Trace))
}

// NewSpanID gives the id of a span with a parent.
func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, _ := ctx.Value(idsKey{}).(*runspan.Span)
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
