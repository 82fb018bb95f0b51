package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
)

// service returns a configured error.
type service struct {
	redactorv1.UnimplementedRedactorServer
	fail func() error
}

func (s service) Redact(context.Context, *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	return &redactorv1.RedactResponse{}, s.fail()
}

func (s service) RedactStream(grpc.BidiStreamingServer[redactorv1.RedactStreamRequest, redactorv1.RedactStreamResponse]) error {
	return s.fail()
}

// transports returns a connection to a service over each transport.
var transports = map[string]func(t *testing.T, s redactorv1.RedactorServer) grpc.ClientConnInterface{
	"network": network, "local": func(t *testing.T, s redactorv1.RedactorServer) grpc.ClientConnInterface {
		t.Helper()
		conn, _ := local(t, s)
		return conn
	},
}

func network(t *testing.T, s redactorv1.RedactorServer) grpc.ClientConnInterface {
	t.Helper()
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
	redactorv1.RegisterRedactorServer(srv, s)
	conn, _ := rpctest.Serve(t, srv)
	return conn
}

// calls makes a unary and a streaming call over each transport to a failing service.
func calls(t *testing.T, fail func() error) (errs []error) {
	t.Helper()
	for _, connect := range transports {
		c := redactorv1.NewRedactorClient(connect(t, service{fail: fail}))
		_, err := c.Redact(t.Context(), &redactorv1.RedactRequest{})
		s, serr := c.RedactStream(t.Context())
		require.NoError(t, serr)
		_, serr = s.Recv()
		errs = append(errs, err, serr)
	}
	return errs
}

func TestFault_IsTheSameOnBothSidesOfTheWire(t *testing.T) {
	t.Parallel()
	errs := calls(t, func() error {
		return fault.New(fault.RateLimited, "slow down").With("scope", "key").After(1500 * time.Millisecond)
	})
	for _, err := range errs {
		e, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.RateLimited, e.Code)
		require.Equal(t, "slow down", e.Message)
		require.Equal(t, "key", e.Details["scope"])
		require.Equal(t, 2*time.Second, e.RetryAfter, "rounded up to the header's seconds")
	}
}

func TestForeignErrors_AreHiddenBehindAnId(t *testing.T) {
	t.Parallel()
	errs := calls(t, func() error { return errors.New("pq: password is hunter2") })
	for _, err := range errs {
		e, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, fault.InternalError, e.Code)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotEmpty(t, e.Details["correlationId"])
	}
}

// If a call of the handler to another service times out, its caller gets a retryable error.
func TestSlowDependencies_AreRetryable(t *testing.T) {
	t.Parallel()
	for _, err := range calls(t, func() error { return fmt.Errorf("read: %w", context.DeadlineExceeded) }) {
		e, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.ServiceUnavailable, e.Code)
		require.Equal(t, time.Second, e.RetryAfter)
		require.NotContains(t, e.Error(), "read:")
	}
}

func TestPanic_FailsTheCallAndNotTheServer(t *testing.T) {
	t.Parallel()
	errs := calls(t, func() error { panic("boom") })
	for _, err := range errs {
		require.Equal(t, fault.InternalError, fault.CodeOf(err))
		require.NotContains(t, err.Error(), "boom")
	}
}

// The one detail of a status is the envelope's JSON (OpenWOP host contract §9.4).
func TestToStatus_HasTheEnvelopeOfTheProfile(t *testing.T) {
	t.Parallel()
	st, ok := status.FromError(rpc.ToStatus(fault.New(fault.RunNotFound, "gone"), false))
	require.True(t, ok)
	require.Equal(t, int32(5), st.Proto().GetCode())
	require.Len(t, st.Proto().GetDetails(), 1)
	require.Equal(t, "openwop.dev/spec/v1/ErrorEnvelope", st.Proto().GetDetails()[0].GetTypeUrl())
	require.JSONEq(t, `{"error":"run_not_found","message":"gone"}`, string(st.Proto().GetDetails()[0].GetValue()))
}

// Within the process the redactor must see a whole secret (OpenWOP envelope contract §11, sinks).
// Errors that leave the process are masked.
func TestToStatus_MasksWhatLeavesTheProcess(t *testing.T) {
	t.Parallel()
	const secret = "hunter2.plum.sk-abcdef12345678,and-the-rest"
	e := fault.New(fault.ValidationError, "/%s: unknown member", secret).With("path", "/"+secret)
	for within, want := range map[bool]string{true: secret, false: "hunter2.plum.[REDACTED],and-the-rest"} {
		err := rpc.ToStatus(e, within)
		require.Contains(t, err.Error(), want)
		got, ok := fault.As(rpc.FromStatus(err))
		require.True(t, ok)
		require.Equal(t, "/"+want+": unknown member", got.Message)
		require.Equal(t, "/"+want, got.Details["path"])
	}
}

func TestFromStatus_KeepsContextErrors(t *testing.T) {
	t.Parallel()
	for _, err := range calls(t, func() error { return context.DeadlineExceeded }) {
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "a deadline of the server's own is not the caller's")
	}
	require.NoError(t, rpc.FromStatus(nil))
}

// Balancers need the standard statuses of health checks.
func TestHealth_KeepsItsOwnStatuses(t *testing.T) {
	t.Parallel()
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
	healthv1.RegisterHealthServer(srv, health.NewServer())
	conn, _ := rpctest.Serve(t, srv)
	_, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "unknown"})
	require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
}

// The name of a method is text of the caller. Unknown methods are rejected without repeating it, with
// the canonical envelope (OpenWOP host contract §9.4).
func TestServer_DoesNotRepeatTheNameOfAnUnknownMethod(t *testing.T) {
	t.Parallel()
	srv := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
	redactorv1.RegisterRedactorServer(srv, service{fail: func() error { return nil }})
	conn, _ := rpctest.Serve(t, srv)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = srv.Serve(lis) }() // ends with the other listener
	bare, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = bare.Close() }()
	for method, wellFormed := range map[string]bool{
		"/waybill.redactor.v1.Redactor/hunter2": true,
		"/hunter2/Redact":                       true,
		"/hunter2/hunter2/hunter2":              true,
		"/hunter2":                              false,
	} {
		err := conn.Invoke(t.Context(), method, &redactorv1.RedactRequest{}, &redactorv1.RedactResponse{})
		require.Equal(t, fault.NotFound, fault.CodeOf(err), method)
		st := status.Convert(bare.Invoke(t.Context(), method, &redactorv1.RedactRequest{}, &redactorv1.RedactResponse{}))
		require.Equal(t, codes.Unimplemented, st.Code(), method)
		require.NotContains(t, st.Message(), "hunter2", method)
		details := st.Proto().GetDetails()
		require.Equal(t, wellFormed, len(details) == 1, method)
		if wellFormed {
			require.Equal(t, "openwop.dev/spec/v1/ErrorEnvelope", details[0].GetTypeUrl())
			require.JSONEq(t, `{"error":"not_found","message":"this host does not serve the method"}`, string(details[0].GetValue()))
		}
	}
	_, err = redactorv1.NewRedactorClient(conn).Redact(t.Context(), &redactorv1.RedactRequest{})
	require.NoError(t, err)
}
