package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/natsmon"
)

// A gateway is not ready while NATS does not sync its own writes, even if all other services are
// ready (docs/services.md, "Readiness").
func TestGateway_IsUnreadyWhileItsWritesAreLessSafe(t *testing.T) {
	t.Parallel()
	varz := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jetstream":{"config":{"sync_always":false}}}`)
	}))
	t.Cleanup(varz.Close)
	log := slog.New(slog.DiscardHandler)
	g := &gatewayProcess{
		core:  core{log: log, stores: &natsstore.Stores{Monitor: natsmon.New([]string{varz.URL}, log)}},
		peers: &peer.Watch{},
	}
	err := g.check(t.Context())
	require.ErrorIs(t, err, natsmon.ErrLazy)
	require.ErrorIs(t, g.lacking.Reason(), natsmon.ErrLazy, "waybill_serving shows the reason")
	require.ErrorContains(t, err, varz.URL, "for the log")
	require.EqualError(t, probe.Public(err), natsmon.ErrLazy.Error())
}

// Callers leave a replica that cannot read immediately, even if another service is silent.
func TestReadiness_ReportsReadsWhileAnotherServiceIsSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  func(context.Context) error
		want healthv1.HealthCheckResponse_ServingStatus
	}{
		"its stores are away": {
			func(context.Context) error { return errors.New("NATS is away") },
			healthv1.HealthCheckResponse_NOT_SERVING,
		},
		"its stores are there": {func(context.Context) error { return nil }, healthv1.HealthCheckResponse_SERVING},
		"it has none":          {nil, healthv1.HealthCheckResponse_SERVING},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &process{health: health.NewServer()}
				silent := func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				}
				ctx, end := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.readiness(c.own, silent).Check(ctx) }()
				synctest.Wait()
				res, err := p.health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: probe.HealthOfReads})
				require.NoError(t, err)
				require.Equal(t, c.want, res.GetStatus())
				end()
				require.ErrorIs(t, <-done, context.Canceled)
			})
		})
	}
}
