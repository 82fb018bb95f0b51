package tracing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/obs/telemetry"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/double/otlp"
)

const (
	callTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callParent = "00f067aa0ba902b7"
)

// called returns preset answers, and records the trace contexts of its calls.
type called struct {
	redactorv1.UnimplementedRedactorServer
	fails error
	in    chan string
}

func (c called) Redact(ctx context.Context, _ *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	c.in <- runspan.Of(ctx)
	return &redactorv1.RedactResponse{}, c.fails
}

func (c called) RedactStream(s grpc.BidiStreamingServer[redactorv1.RedactStreamRequest, redactorv1.RedactStreamResponse]) error {
	c.in <- runspan.Of(s.Context())
	return c.fails
}

// serve starts a server with spans to a collector.
func serve(t *testing.T, calls *tracing.Calls, s called) redactorv1.RedactorClient {
	t.Helper()
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), []grpc.UnaryServerInterceptor{calls.Unary}, []grpc.StreamServerInterceptor{calls.Stream})
	redactorv1.RegisterRedactorServer(srv, s)
	conn, _ := rpctest.Serve(t, srv)
	return redactorv1.NewRedactorClient(conn)
}

// exporting returns an exporter, and a function that closes it and returns all sent spans.
func exporting(t *testing.T, ratio float64) (*tracing.Exporter, func() []otlp.Span) {
	t.Helper()
	c := otlp.New()
	t.Cleanup(c.Close)
	x := exporter(t, c.URL(), telemetry.HTTPProtobuf, ratio)
	return x, func() []otlp.Span {
		flush(t, x)
		return c.Spans()
	}
}

func within(ctx context.Context, flags string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", "00-"+callTrace+"-"+callParent+"-"+flags)
}

func TestCalls_MakeASpanPerCallWithoutContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails  error
		status int64
		code   string
		failed bool
	}{
		"answered":      {nil, 0, "", false},
		"the caller's":  {fault.New(fault.RunNotFound, "swordfish"), 5, "run_not_found", false},
		"the service's": {fault.New(fault.ServiceUnavailable, "swordfish"), 14, "service_unavailable", true},
		"unknown error": {errors.New("swordfish"), 13, "internal_error", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, all := exporting(t, 0)
			s := called{fails: tc.fails, in: make(chan string, 1)}
			client := serve(t, &tracing.Calls{Exporter: x}, s)
			_, err := client.Redact(within(t.Context(), "01"), &redactorv1.RedactRequest{Texts: []string{"swordfish"}})
			require.Equal(t, tc.fails == nil, err == nil)
			inner := <-s.in
			stream, err := client.RedactStream(within(t.Context(), "01"))
			require.NoError(t, err)
			_, err = stream.Recv()
			require.Equal(t, tc.fails == nil, errors.Is(err, io.EOF))
			<-s.in
			spans := all()
			require.Len(t, spans, 2)
			require.Equal(t, "00-"+callTrace+"-"+spans[0].SpanID+"-01", inner, "the called service continues the span")
			for i, method := range []string{"Redact", "RedactStream"} {
				want := map[string]any{
					"rpc.system":           "grpc",
					"rpc.service":          "waybill.redactor.v1.Redactor",
					"rpc.method":           method,
					"rpc.grpc.status_code": tc.status,
				}
				if tc.code != "" {
					want["error.type"] = tc.code
				}
				require.Equal(t, want, spans[i].Attributes)
				require.Equal(t, "waybill.redactor.v1.Redactor/"+method, spans[i].Name)
				require.Equal(t, []string{callTrace, callParent}, []string{spans[i].TraceID, spans[i].ParentID})
				require.Equal(t, tc.failed, spans[i].Code == 2)
				require.NotContains(t, spans[i].Message, "swordfish")
			}
		})
	}
}

func TestCalls_StartTracesOnlyWithRoots(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		calls tracing.Calls
		ratio float64
		ctx   func(context.Context) context.Context
		spans int
	}{
		"in no trace": {tracing.Calls{}, 1, func(ctx context.Context) context.Context { return ctx }, 0},
		"in no trace, where they do": {
			tracing.Calls{Roots: true},
			1,
			func(ctx context.Context) context.Context { return ctx },
			1,
		},
		"by the ratio": {
			tracing.Calls{Roots: true},
			0,
			func(ctx context.Context) context.Context { return ctx },
			0,
		},
		"in a trace that is left out": {
			tracing.Calls{Roots: true},
			1,
			func(ctx context.Context) context.Context { return within(ctx, "00") },
			0,
		},
		"malformed": {tracing.Calls{}, 1, func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "traceparent", "00-x")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, all := exporting(t, tc.ratio)
			s := called{in: make(chan string, 1)}
			tc.calls.Exporter = x
			_, err := serve(t, &tc.calls, s).Redact(tc.ctx(t.Context()), &redactorv1.RedactRequest{})
			require.NoError(t, err)
			<-s.in
			require.Len(t, all(), tc.spans)
		})
	}
}

// The name of an unknown method comes from the caller, so it makes no span.
func TestCalls_MakeNoSpanOfUnknownMethods(t *testing.T) {
	t.Parallel()
	x, all := exporting(t, 1)
	calls := &tracing.Calls{Exporter: x, Roots: true}
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), []grpc.UnaryServerInterceptor{calls.Unary}, []grpc.StreamServerInterceptor{calls.Stream})
	s := called{in: make(chan string, 1)}
	redactorv1.RegisterRedactorServer(srv, s)
	conn, _ := rpctest.Serve(t, srv)
	for _, method := range []string{
		"/waybill.redactor.v1.Redactor/swordfish", "/swordfish/Redact", "/a/swordfish/b",
		"/waybill.redactor.v1/Redactor", "/waybill.redactor.v1.Redact/Request",
	} {
		err := conn.Invoke(within(t.Context(), "01"), method, &redactorv1.RedactRequest{}, &redactorv1.RedactResponse{})
		require.Equal(t, fault.NotFound, fault.CodeOf(err), method)
	}
	_, err := redactorv1.NewRedactorClient(conn).Redact(within(t.Context(), "01"), &redactorv1.RedactRequest{})
	require.NoError(t, err)
	<-s.in
	require.Len(t, all(), 1)
}

// A service without an exporter forwards the trace context.
func TestForward_ForwardsTheTraceContext(t *testing.T) {
	t.Parallel()
	last := called{in: make(chan string, 2)}
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), []grpc.UnaryServerInterceptor{(&tracing.Calls{}).Unary}, []grpc.StreamServerInterceptor{(&tracing.Calls{}).Stream})
	redactorv1.RegisterRedactorServer(srv, last)
	conn, _ := rpctest.ServeWith(t, srv, tracing.Forward()...)
	client := redactorv1.NewRedactorClient(conn)
	for _, want := range []string{"00-" + callTrace + "-" + callParent + "-00", ""} {
		ctx := runspan.In(t.Context(), want)
		_, err := client.Redact(ctx, &redactorv1.RedactRequest{})
		require.NoError(t, err)
		stream, err := client.RedactStream(ctx)
		require.NoError(t, err)
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, want, <-last.in)
		require.Equal(t, want, <-last.in)
	}
}
