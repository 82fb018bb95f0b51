package gateway

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/frame"
)

// traceReader reads the trace contexts of requests in the forms of a propagator, and passes them on
// as W3C Trace Context, the form of this host. The nil traceReader changes nothing.
type traceReader struct{ propagation.TextMapPropagator }

func newTraceReader(p propagation.TextMapPropagator) *traceReader {
	if p == nil {
		return nil
	}
	return &traceReader{p}
}

// read returns a request's trace context; empty if it has none.
func (t *traceReader) read(from propagation.TextMapCarrier) string {
	sc := trace.SpanContextFromContext(t.Extract(context.Background(), from))
	if !sc.IsValid() {
		return ""
	}
	return runspan.Traceparent(runspan.TraceID(sc.TraceID()), runspan.SpanID(sc.SpanID()), byte(sc.TraceFlags()))
}

// Handler reads them from headers.
func (t *traceReader) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parent := t.read(propagation.HeaderCarrier(r.Header)); parent != "" {
			r.Header.Set("Traceparent", parent)
		} else {
			r.Header.Del("Traceparent")
		}
		next.ServeHTTP(w, r)
	})
}

// carrier reads metadata, whose keys are lower case.
type carrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if v := metadata.MD(c).Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string {
	out := make([]string, 0, len(c))
	for key := range c {
		out = append(out, key)
	}
	return out
}

func (t *traceReader) context(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	if parent := t.read(carrier(md)); parent != "" {
		md.Set(frame.HeaderTrace, parent)
	} else {
		md.Delete(frame.HeaderTrace)
	}
	return metadata.NewIncomingContext(ctx, md)
}

// Unary reads them from the metadata of calls.
func (t *traceReader) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if t != nil {
		ctx = t.context(ctx)
	}
	return next(ctx, req)
}

// Stream reads them from the metadata of streams.
func (t *traceReader) Stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if t != nil {
		ss = readStream{ss, t.context(ss.Context())}
	}
	return next(srv, ss)
}

// readStream is a stream with its trace context.
type readStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc.ServerStream returns its context
}

// Context returns the context with the trace context.
func (s readStream) Context() context.Context { return s.ctx }
