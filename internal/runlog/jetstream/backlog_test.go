package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/runlogtest"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// backlogFrames is the number of frames of 1 MB that backlog writes: more than the 64 MB that a
// server keeps for a connection.
const backlogFrames = 80

// backlog starts a server whose log has these frames.
func backlog(t *testing.T) *natsd.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, writes 80 MB: run without -short")
	}
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("writer")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	body := bytes.Repeat([]byte("x"), 1<<20)
	for i := range backlogFrames {
		start := frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}, body)
		_, err := log.Append(t.Context(), start, 0)
		require.NoError(t, err)
	}
	return srv
}

// A server closes a connection with more than max_pending bytes waiting, and all its subscriptions
// with it. No reader requests that much at a time (docs/streams.md, "Access for readers").
func TestReaders_RequestNoMoreThanTheServersPendingLimit(t *testing.T) {
	t.Parallel()
	srv := backlog(t)
	errAll := errors.New("all are there")
	for name, read := range map[string]func(context.Context, *jetstream.Log) error{
		"Follow": func(ctx context.Context, log *jetstream.Log) error {
			got := 0
			err := log.Follow(ctx, 0, func(batch []*frame.Frame) error {
				if got += len(batch); got == backlogFrames {
					return errAll
				}
				return nil
			}, func(_ subject.Run, pos uint64, err error) { t.Errorf("frame %d: %v", pos, err) })
			if errors.Is(err, errAll) {
				return nil
			}
			return err
		},
		"Queue": func(ctx context.Context, log *jetstream.Log) error {
			q, err := log.Queue(ctx)
			if err != nil {
				return err
			}
			defer q.Close()
			for range backlogFrames {
				d, err := q.Next(ctx)
				if err != nil {
					return err
				}
				if err := d.Ack(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		nc, err := srv.Connect(name)
		require.NoError(t, err)
		cut := make(chan error, 64)
		nc.SetDisconnectErrHandler(func(_ *nats.Conn, err error) { cut <- err })
		log, err := jetstream.Open(t.Context(), nc, testConfig())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, read(ctx, log), name)
		cancel()
		require.Empty(t, cut, name)
		nc.Close()
	}
}

// A server may accept larger messages than the host needs (docs/kubernetes.md). A message larger
// than a reader's request would never be delivered, and block everything after it.
func TestReaders_ReadTheLargestFrameOfTheServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, writes and reads frames of 14 MB: run without -short")
	}
	const large = 14 << 20
	srv := natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: 15 << 20})
	nc, err := nats.Connect(srv.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	start := frame.NewStart(subject.Run{
		Tenant:     "acme",
		WorkflowID: "wf",
		RunID:      "queued",
	}, bytes.Repeat([]byte("x"), large))
	_, err = log.Append(ctx, start, 0)
	require.NoError(t, err)
	long := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "long"}
	const some = 40 // more than are requested one by one
	require.NoError(t, (&runlogtest.Writer{Log: full{Log: log}, Run: long, Name: "w"}).Add(ctx, some))
	last, err := log.Last(ctx, long)
	require.NoError(t, err)
	e := wire.Draft{
		Type:    wire.EventLogAppended,
		Payload: []byte(`{"level":"info","message":"` + strings.Repeat("x", large) + `"}`),
	}
	_, err = log.Append(ctx, frame.New(long, subject.Step, last.Head(), []wire.Event{e.Place(long.RunID, last.Head().Next, time.Now())}), last.Pos)
	require.NoError(t, err)

	q, err := log.Queue(ctx)
	require.NoError(t, err)
	t.Cleanup(q.Close)
	d, err := q.Next(ctx)
	require.NoError(t, err, "Queue")
	require.Len(t, d.Frame().Body, large)

	frames, err := log.Run(ctx, long)
	require.NoError(t, err, "Run")
	require.Len(t, frames, some+1)

	errAll, got := errors.New("all are there"), 0
	require.ErrorIs(t, log.Follow(ctx, 0, func(batch []*frame.Frame) error {
		if got += len(batch); got == some+2 {
			return errAll
		}
		return nil
	}, func(_ subject.Run, pos uint64, err error) { t.Errorf("frame %d: %v", pos, err) }), errAll, "Follow")
}

// Frames that were delivered but not read are buffered in memory, so few large ones are requested.
func TestFollow_BuffersFewFramesAheadOfItsReader(t *testing.T) {
	t.Parallel()
	srv := backlog(t)
	nc, err := srv.Connect("reader")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errAll, before := errors.New("all are there"), nc.Stats().InBytes
	// follow reads all frames, and calls a function before it reads the first.
	follow := func(log *jetstream.Log, first func()) {
		got := 0
		require.ErrorIs(t, log.Follow(ctx, 0, func(batch []*frame.Frame) error {
			if got == 0 {
				first()
			}
			if got += len(batch); got == backlogFrames {
				return errAll
			}
			return nil
		}, func(_ subject.Run, pos uint64, err error) { t.Errorf("frame %d: %v", pos, err) }), errAll)
	}
	other, err := srv.Connect("other")
	require.NoError(t, err)
	t.Cleanup(other.Close)
	quick, err := jetstream.Open(ctx, other, testConfig())
	require.NoError(t, err)
	follow(log, func() {
		follow(quick, func() {}) // another reader reads all of it in this time
		require.Less(t, nc.Stats().InBytes-before, uint64(64<<20))
	})
}
