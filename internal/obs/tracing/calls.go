package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	rpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
)

// Calls makes a span of each call of a server, named after its method. Spans contain nothing
// of requests and responses. Install its interceptors inside those that turn errors into
// statuses.
type Calls struct {
	// Exporter exports the spans; nil makes none, and only forwards the trace context to
	// the server's own calls. Set it before the server serves.
	Exporter *Exporter
	// Roots also makes spans of calls without a trace context, as roots of new traces.
	Roots bool
}

// Unary is the interceptor of unary calls.
func (c *Calls) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	ctx, end := c.startSpan(ctx, info.FullMethod)
	resp, err = next(ctx, req)
	end(err)
	return resp, err
}

// Stream is the interceptor of streams. A span ends with its stream.
func (c *Calls) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, end := c.startSpan(ss.Context(), info.FullMethod)
	err := next(srv, tracedStream{ss, ctx})
	end(err)
	return err
}

// tracedStream is a stream with a trace context.
type tracedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc.ServerStream returns its context
}

// Context returns the context with the trace context.
func (s tracedStream) Context() context.Context { return s.ctx }

// startSpan starts the span of a call. It returns the context for the handler. end ends the
// span with the handler's error.
func (c *Calls) startSpan(ctx context.Context, method string) (_ context.Context, end func(error)) {
	parent := rpc.Traceparent(ctx)
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if c.Exporter == nil || parent == "" && !c.Roots || strings.HasPrefix(service, "grpc.") || !isKnownMethod(service, name) {
		return runspan.In(ctx, parent), func(error) {}
	}
	above := WithSpanContext(runspan.In(context.Background(), parent))
	_, span := c.Exporter.tracer.Start(above, service+"/"+name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name),
	))
	own := span.SpanContext()
	return runspan.In(ctx, runspan.Traceparent(runspan.TraceID(own.TraceID()), runspan.SpanID(own.SpanID()), byte(own.TraceFlags()))), func(err error) {
		endSpan(ctx, span, err)
	}
}

// isKnownMethod reports whether this program has the method. The name of an unknown method
// comes from the caller and may contain anything (OpenWOP envelope contract §11, sinks).
func isKnownMethod(service, name string) bool {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	_, ok := d.(protoreflect.MethodDescriptor)
	return err == nil && ok
}

// endSpan ends the span of a call. Cancelled calls and client errors do not count as errors
// of the server, by the conventions of OpenTelemetry.
func endSpan(ctx context.Context, span trace.Span, err error) {
	defer span.End()
	status, code := rpccodes.OK, ""
	switch e, ok := fault.As(err); {
	case err == nil:
	case ctx.Err() != nil:
		status = rpccodes.Canceled
	case ok:
		status, code = rpccodes.Code(e.Row().GRPC), string(e.Code) //nolint:gosec // G115: the table holds codes 3..16
	default:
		status, code = rpccodes.Internal, string(fault.InternalError)
	}
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status)))
	if code != "" {
		span.SetAttributes(attribute.String("error.type", code))
	}
	if status == rpccodes.Internal || status == rpccodes.Unavailable || status == rpccodes.Unimplemented {
		span.SetStatus(codes.Error, code)
	}
}

// Forward returns the dial options of a connection whose calls continue the trace in their
// context.
func Forward() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(withTraceparent(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(withTraceparent(ctx), desc, cc, method, opts...)
		}),
	}
}

func withTraceparent(ctx context.Context) context.Context {
	if parent := runspan.Of(ctx); parent != "" {
		return metadata.AppendToOutgoingContext(ctx, frame.HeaderTrace, parent)
	}
	return ctx
}
