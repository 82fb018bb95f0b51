package natslink_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}

// silent is a subject whose listener reports each request on asked and does not answer.
const silent = "silent"

func connect(t *testing.T) (srv *natsd.Server, nc *nats.Conn, asked chan struct{}) {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err = srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	asked = make(chan struct{}, 1)
	_, err = nc.Subscribe(silent, func(*nats.Msg) { asked <- struct{}{} })
	require.NoError(t, err)
	return srv, nc, asked
}

func TestAsk_RetriesWhenTheServerRestartsDuringARequest(t *testing.T) {
	t.Parallel()
	srv, nc, asked := connect(t)
	_, err := nc.Subscribe("loud", func(m *nats.Msg) { _ = m.Respond([]byte("here")) })
	require.NoError(t, err)
	restarted := make(chan error, 1)
	go func() {
		<-asked
		restarted <- srv.Restart()
	}()

	var answer *nats.Msg
	subjects := []string{silent, "loud"}
	require.NoError(t, natslink.Watch(nc).Ask(t.Context(), func(ctx context.Context) (err error) {
		answer, err = nc.RequestWithContext(ctx, subjects[0], nil)
		subjects = subjects[1:]
		return err
	}))
	require.NoError(t, <-restarted)
	require.Equal(t, "here", string(answer.Data))
	require.Empty(t, subjects, "each was asked once")
}

func TestOnce_ReportsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	srv, nc, asked := connect(t)
	go func() {
		<-asked
		srv.Stop()
	}()
	calls := 0
	err := natslink.Watch(nc).Once(t.Context(), func(ctx context.Context) error {
		calls++
		_, err := nc.RequestWithContext(ctx, silent, nil)
		return err
	})
	require.ErrorIs(t, err, natslink.ErrLost)
	require.Equal(t, 1, calls)
}

func TestAsk_LeavesOtherErrorsAndTheCallersEndAlone(t *testing.T) {
	t.Parallel()
	_, nc, asked := connect(t)
	link := natslink.Watch(nc)
	err := link.Ask(t.Context(), func(ctx context.Context) error {
		_, err := nc.RequestWithContext(ctx, "nobody", nil)
		return err
	})
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.NotErrorIs(t, err, natslink.ErrLost)

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	err = link.Ask(ctx, func(ctx context.Context) error {
		_, err := nc.RequestWithContext(ctx, silent, nil)
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, natslink.ErrLost)
}

func TestWatch_OfAClosedConnectionEnds(t *testing.T) {
	t.Parallel()
	_, nc, _ := connect(t)
	nc.Close()
	link := natslink.Watch(nc) // the monitor must have ended with the tests
	require.NoError(t, link.Ask(t.Context(), func(context.Context) error { return nil }))
}
