package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/natsmon"
	"waybill.dev/waybill/protocol/fault"
)

// answers is a connection on which every call has one answer.
type answers struct {
	grpc.ClientConnInterface
	err   error
	calls int
}

func (a *answers) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	a.calls++
	return a.err
}

// Only what reads goes to a replica that lacks something, and only while no other is there.
func TestEither_AsksAReplicaThatLacksSomethingForReadsAlone(t *testing.T) {
	t.Parallel()
	away, refused := fault.New(fault.ServiceUnavailable, "nobody is there"), fault.New(fault.NotFound, "no such thing")
	for name, c := range map[string]struct {
		method string
		first  error
		want   error
		reads  int
	}{
		"a read while replicas are there":  {"/s/Get", nil, nil, 0},
		"a read that is refused":           {"/s/Get", refused, refused, 0},
		"a read while none is there":       {"/s/Get", away, nil, 1},
		"a write while none is there":      {"/s/Put", away, away, 0},
		"a write while replicas are there": {"/s/Put", nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := &answers{}
			require.Equal(t, c.want, either{&answers{err: c.first}, reads, []string{"/s/Get"}}.Invoke(t.Context(), c.method, nil, nil))
			require.Equal(t, c.reads, reads.calls)
		})
	}
}

// However long the other services have been there: what a gateway writes itself has to be as
// safe as it was told (docs/services.md, "What a service that is not ready lacks").
func TestGateway_IsUnreadyWhileItsWritesAreLessSafe(t *testing.T) {
	t.Parallel()
	varz := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jetstream":{"config":{"sync_always":false}}}`)
	}))
	t.Cleanup(varz.Close)
	log := slog.New(slog.DiscardHandler)
	h := &host{log: log, stores: &stores{monitor: natsmon.New([]string{varz.URL}, log)}}
	err := h.takes(t.Context())
	require.ErrorIs(t, err, natsmon.ErrLazy)
	require.ErrorIs(t, h.lacking.reason(), natsmon.ErrLazy, "waybill_serving tells it")
	require.ErrorContains(t, err, varz.URL, "for the log")
	require.EqualError(t, toAnybody(err), natsmon.ErrLazy.Error())
}

func TestReadiness_EndsBeforeTheService(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	var s serving
	s.set(errStarting)
	var told []error
	r := readiness{
		serving: &s, log: slog.New(slog.DiscardHandler),
		check:   func(context.Context) error { return nil },
		changed: func(err error) { told = append(told, err) },
		first: func() error {
			require.NoError(t, s.reason())
			end()
			return nil
		},
	}
	require.NoError(t, r.watch(ctx))
	require.Equal(t, []error{nil, errEnding}, told)
	require.ErrorIs(t, s.reason(), errEnding)
}

// Callers leave a replica that cannot read at once, however long another service is silent.
func TestReadiness_TellsWhetherItReadsWhileAnotherServiceIsSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  func(context.Context) error
		want healthv1.HealthCheckResponse_ServingStatus
	}{
		"its stores are away":  {func(context.Context) error { return errors.New("NATS is away") }, healthv1.HealthCheckResponse_NOT_SERVING},
		"its stores are there": {func(context.Context) error { return nil }, healthv1.HealthCheckResponse_SERVING},
		"it has none":          {nil, healthv1.HealthCheckResponse_SERVING},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &alone{health: health.NewServer()}
				silent := func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				}
				ctx, end := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- a.readiness(time.Now(), c.own, silent).check(ctx) }()
				synctest.Wait()
				res, err := a.health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: healthOfReads})
				require.NoError(t, err)
				require.Equal(t, c.want, res.GetStatus())
				end()
				require.ErrorIs(t, <-done, context.Canceled)
			})
		})
	}
}
