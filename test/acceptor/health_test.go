package acceptor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/test/harness"
)

// plainly connects like a generic client, for example a load balancer.
func plainly(t *testing.T, h *harness.Host) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(h.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestHealth_IsReportedPerServiceName(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	const (
		acceptor = "waybill.acceptor.v1.Acceptor"
		redactor = "waybill.redactor.v1.Redactor"
	)
	require.Equal(t, acceptor, acceptorv1.Acceptor_ServiceDesc.ServiceName)
	require.Equal(t, redactor, redactorv1.Redactor_ServiceDesc.ServiceName)
	scrub := harness.Serve(t, "redactor")
	both := harness.Serve(t, "acceptor", "--nats", n.url())
	apart := harness.Serve(t, "acceptor", "--nats", n.url(), "--redactor", scrub.GRPC)
	serving, not := healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING
	check := func(h *harness.Host, name string) (healthv1.HealthCheckResponse_ServingStatus, error) {
		res, err := healthv1.NewHealthClient(plainly(t, h)).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		return res.GetStatus(), err
	}
	for _, tc := range []struct {
		host *harness.Host
		name string
	}{{both, ""}, {both, acceptor}, {both, redactor}, {apart, ""}, {apart, acceptor}, {scrub, ""}, {scrub, redactor}} {
		got, err := check(tc.host, tc.name)
		require.NoError(t, err, tc.name)
		require.Equal(t, serving, got, tc.name)
	}
	// Services not served here are unknown, as the health check protocol defines.
	for host, name := range map[*harness.Host]string{both: "waybill.acceptor.v1.Other", apart: redactor, scrub: acceptor} {
		_, err := check(host, name)
		require.Equal(t, codes.NotFound, status.Code(err), "%s: %v", name, err)
	}

	n.stop()
	for _, name := range []string{"", acceptor} {
		require.Eventually(t, func() bool { got, _ := check(both, name); return got == not }, 30*time.Second, 20*time.Millisecond, name)
	}
	got, err := check(both, redactor)
	require.NoError(t, err)
	require.Equal(t, serving, got, "the redactor needs no log")
}

func TestHealth_WatchReportsChanges(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url())
	w, err := healthv1.NewHealthClient(plainly(t, h)).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "waybill.acceptor.v1.Acceptor"})
	require.NoError(t, err)
	next := func(want healthv1.HealthCheckResponse_ServingStatus) {
		res, err := w.Recv()
		require.NoError(t, err)
		require.Equal(t, want, res.GetStatus())
	}
	next(healthv1.HealthCheckResponse_SERVING)
	n.stop()
	next(healthv1.HealthCheckResponse_NOT_SERVING)
	n.start()
	next(healthv1.HealthCheckResponse_SERVING)
}
