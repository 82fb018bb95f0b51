package acceptor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/harness"
)

// soon is how long an acceptor may take to report a lost log. Callers allow far more.
const soon = 10 * time.Second

// The log's server stops while the acceptor runs. Callers and load balancers get an error
// immediately. When the server is back, the acceptor recovers by itself.
func TestNATS_OutageIsReportedImmediatelyAndRecoversAlone(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url())
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	accept := func(id string) (*acceptorv1.AcceptResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return client.Accept(ctx, &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope(id, "m")})
	}
	first, err := accept("before")
	require.NoError(t, err)

	for range 2 {
		n.stop()
		for name, call := range map[string]func() error{
			"a fresh envelope":    func() error { _, err := accept("during-outage"); return err },
			"a repeated envelope": func() error { _, err := accept("before"); return err },
			"a new run": func() error {
				_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("other"), NoSecrets: true})
				return err
			},
			"the end of a run": func() error {
				_, err := client.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: ref("other"), Status: "completed"})
				return err
			},
		} {
			began := time.Now()
			err := call()
			e, ok := fault.As(err)
			require.True(t, ok, "%s: %v", name, err)
			require.Equal(t, fault.ServiceUnavailable, e.Code, name)
			require.Positive(t, e.RetryAfter, name)
			require.Less(t, time.Since(began), soon, name)
		}
		awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
		n.start()
		awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
		again, err := accept("before")
		require.NoError(t, err)
		require.Equal(t, string(first.GetOutcome()), string(again.GetOutcome()))
		_, err = accept("during-outage")
		require.NoError(t, err)
	}
	require.Len(t, recorded(t, runs(t, n.url()), "r"), 2)
}

// A caller with a short deadline gets the error before it expires.
func TestNATS_OutageIsReportedWithinTheCallersDeadline(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url())
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	n.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = client.Accept(ctx, &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
}
