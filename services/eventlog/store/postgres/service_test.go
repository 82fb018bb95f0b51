package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
)

// serve is the whole service over a store, as other services see it.
func serve(t *testing.T, log *memory.Log, s store.Store) (eventlogv1.EventLogClient, *eventlog.Service) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	svc, err := eventlog.New(eventlog.DefaultConfig(), eventlog.Deps{Log: log, Store: s, Logger: quiet})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	srv := rpc.NewServer(quiet, nil, nil)
	svc.Register(srv)
	conn, _ := rpctest.Serve(t, srv)
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return eventlogv1.NewEventLogClient(conn), svc
}

// Each replica feeds its streams from the log, whichever replica stored the frames.
func TestService_EndsStreamsOfAllReplicas(t *testing.T) {
	t.Parallel()
	log := memory.New()
	cfg := config(t)
	const runs, replicas = 10, 3
	var streams []eventlogv1.EventLog_FollowClient
	var clients []eventlogv1.EventLogClient
	for range replicas {
		c, _ := serve(t, log, open(t, cfg))
		clients = append(clients, c)
	}
	var writers []*logtest.Writer
	for n := range runs {
		w := logtest.Begin(t, log, logtest.Record(fmt.Sprint("run-", n)))
		writers = append(writers, w)
		for _, c := range clients {
			s, err := c.Follow(within(t), &eventlogv1.FollowRequest{Tenant: logtest.Tenant, RunId: w.Run().RunID, After: -1})
			require.NoError(t, err)
			streams = append(streams, s)
		}
	}
	for _, w := range writers {
		w.Step(logtest.RunStarted, logtest.Log("a"))
		for i := range 10 {
			w.Step(logtest.Node(fmt.Sprint("n", i))...)
		}
		w.Step(logtest.RunCompleted)
	}
	for i, s := range streams {
		events := 0
		for {
			resp, err := s.Recv()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			events += len(resp.GetEvents())
		}
		require.Len(t, writers[i/replicas].Events, events)
	}
}

func TestService_AnswersTryAgainWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	own := postgrestest.Start(t)
	log := memory.New()
	require.NoError(t, own.Stop("fast"))
	s := open(t, postgres.Config{URL: own.URL(), ConnectTimeout: time.Second})
	c, svc := serve(t, log, s)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	w.Step(logtest.RunStarted, logtest.Log("a"))
	get := func() error {
		_, err := c.GetRun(within(t), &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: "run-1"})
		return err
	}
	for _, mode := range []string{"fast", "immediate"} {
		require.ErrorIs(t, get(), fault.New(fault.ServiceUnavailable, ""))
		require.Eventually(t, func() bool { return svc.Ready() != nil }, 30*time.Second, time.Millisecond)
		require.NoError(t, own.Restart())
		require.Eventually(t, func() bool { return get() == nil && svc.Ready() == nil }, 30*time.Second, 5*time.Millisecond)
		w.Step(logtest.Log("b"))
		require.NoError(t, get())
		require.NoError(t, own.Stop(mode))
		w.Step(logtest.Log("c"))
	}
}
