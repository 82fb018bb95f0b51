package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// A server ends a connection that has more waiting for it than max_pending, and with it all else
// that goes over the connection: no reader asks for that much at once (docs/streams.md, "Who may
// read").
func TestReaders_AskForNoMoreThanTheServerKeepsForAConnection(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 100 MB; left out under -short")
	}
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	writer, err := srv.Connect("writer")
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	log, err := jetstream.Open(t.Context(), writer, testConfig())
	require.NoError(t, err)
	const frames = 100
	body := bytes.Repeat([]byte("x"), 1<<20)
	for i := range frames {
		start := frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}, body)
		_, err := log.Append(t.Context(), start, 0)
		require.NoError(t, err)
	}
	errAll := errors.New("all are there")
	for name, read := range map[string]func(context.Context, *jetstream.Log) error{
		"Follow": func(ctx context.Context, log *jetstream.Log) error {
			got := 0
			err := log.Follow(ctx, 0, func(batch []*frame.Frame) error {
				if got += len(batch); got == frames {
					return errAll
				}
				return nil
			}, func(pos uint64, err error) { t.Errorf("frame %d: %v", pos, err) })
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
			for range frames {
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
