package acceptor

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/harness"
)

// stock is the default max_payload of a NATS server.
const stock = 1 << 20

// An envelope too large for the server is a permanent error, and the operator's log names the
// setting to change.
func TestPayload_TooLargeForTheServerIsAPermanentError(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.opts.MaxPayload = stock
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url())
	h.AwaitLog("max_payload", "8388608")
	client, log := acceptorv1.NewAcceptorClient(dial(t, h)), runs(t, n.url())
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	accept := func(id string, size int) error {
		_, err := patiently(t.Context(), func(ctx context.Context) (*acceptorv1.AcceptResponse, error) {
			return client.Accept(ctx, &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope(id, strings.Repeat("m", size))})
		})
		return err
	}
	require.NoError(t, accept("small", 400<<10))
	err = accept("large", 1000<<10)
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.PayloadTooLarge, e.Code)
	require.False(t, fault.Lookup(e.Code).Retryable)
	require.InDelta(t, stock, e.Details["limitBytes"], 0)
	require.Greater(t, e.Details["sizeBytes"], float64(stock))
	require.Contains(t, e.Message, "max_payload")
	require.Equal(t, map[string]int{"small": 1}, recorded(t, log, "r"))
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)

	// The largest allowed payload needs exactly the max_payload that the acceptor requires.
	n.stop()
	n.opts.MaxPayload = 8 << 20
	n.start()
	require.NoError(t, accept("large", 1000<<10))
	require.Equal(t, map[string]int{"small": 1, "large": 1}, recorded(t, runs(t, n.url()), "r"))
}
