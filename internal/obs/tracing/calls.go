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

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runspan"
)

// Calls makes spans of the calls that a server serves, named after their methods, of which
// there are few. What is asked and answered is in none of them. Its interceptors stand inside
// those that turn errors into statuses.
type Calls struct {
	// Exporter takes the spans; nil: there are none, and traces are only carried on to whom
	// the server calls. It is set before the server serves.
	Exporter *Exporter
	// Roots also makes spans of calls that came in no trace: where traces begin.
	Roots bool
}

// Unary is the interceptor of calls.
func (c *Calls) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	ctx, end := c.begin(ctx, info.FullMethod)
	resp, err = next(ctx, req)
	end(err)
	return resp, err
}

// Stream is the interceptor of streams: their spans end as they do.
func (c *Calls) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, end := c.begin(ss.Context(), info.FullMethod)
	err := next(srv, carrying{ss, ctx})
	end(err)
	return err
}

// carrying is a stream whose context carries a trace.
type carrying struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream's context is a member by its interface
}

// Context is the stream's.
func (s carrying) Context() context.Context { return s.ctx }

// begin gives the context of a call's handler, and what ends the span with the handler's
// error.
func (c *Calls) begin(ctx context.Context, method string) (_ context.Context, end func(error)) {
	parent := rpc.Traceparent(ctx)
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if c.Exporter == nil || parent == "" && !c.Roots || strings.HasPrefix(service, "grpc.") || !described(service, name) {
		return runspan.In(ctx, parent), func(error) {}
	}
	above := context.Background()
	if parent != "" {
		id, span := runspan.TraceOf("", parent)
		above = trace.ContextWithRemoteSpanContext(above, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(id), SpanID: trace.SpanID(span), TraceFlags: trace.TraceFlags(0).WithSampled(runspan.Sampled(parent)), Remote: true,
		}))
	}
	_, span := c.Exporter.tracer.Start(above, service+"/"+name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name),
	))
	own := span.SpanContext()
	return runspan.In(ctx, runspan.Traceparent(runspan.TraceID(own.TraceID()), runspan.SpanID(own.SpanID()), byte(own.TraceFlags()))), func(err error) {
		ended(ctx, span, err)
	}
}

// described reports whether a method is one of this program's. What is called otherwise has
// its name from the caller, and it may be anything (OpenWOP envelope contract §11, sinks).
func described(service, name string) bool {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	_, ok := d.(protoreflect.MethodDescriptor)
	return err == nil && ok
}

// ended closes the span of a call. A caller that has gone is no error of the server's, and
// neither is one that asked for what it may not have: the convention of OpenTelemetry.
func ended(ctx context.Context, span trace.Span, err error) {
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

// Forward are the dial options of a connection whose calls join the trace that their context
// carries.
func Forward() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(forward(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(forward(ctx), desc, cc, method, opts...)
		}),
	}
}

func forward(ctx context.Context) context.Context {
	if parent := runspan.Of(ctx); parent != "" {
		return metadata.AppendToOutgoingContext(ctx, frame.HeaderTrace, parent)
	}
	return ctx
}
