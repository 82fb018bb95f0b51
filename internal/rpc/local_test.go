package rpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local serves a service within the process until stop is called.
func local(t *testing.T, s redactorv1.RedactorServer) (conn grpc.ClientConnInterface, stop func()) {
	t.Helper()
	l := rpc.NewLocal(slog.New(slog.DiscardHandler), nil, nil)
	redactorv1.RegisterRedactorServer(l, s)
	return l, start(t, l)
}

func start(t *testing.T, l *rpc.Local) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// echo returns the request and records what it received.
type echo struct {
	redactorv1.UnimplementedRedactorServer
	saw func(ctx context.Context, req *redactorv1.RedactRequest)
}

func (e echo) Redact(ctx context.Context, req *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	e.saw(ctx, req)
	in, _ := metadata.FromIncomingContext(ctx)
	if err := grpc.SetHeader(ctx, metadata.Pairs("said", in.Get("say")[0])); err != nil {
		return nil, err
	}
	return &redactorv1.RedactResponse{Texts: req.GetTexts()}, nil
}

func (e echo) RedactStream(s grpc.BidiStreamingServer[redactorv1.RedactStreamRequest, redactorv1.RedactStreamResponse]) error {
	for {
		_, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = s.Send(&redactorv1.RedactStreamResponse{})
		}
		if err != nil {
			return err
		}
	}
}

type private struct{}

func TestCall_CrossesAsOverANetwork(t *testing.T) {
	t.Parallel()
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got *redactorv1.RedactRequest
			deadline := time.Now().Add(time.Minute)
			c := redactorv1.NewRedactorClient(connect(t, echo{saw: func(ctx context.Context, req *redactorv1.RedactRequest) {
				got = req
				at, ok := ctx.Deadline()
				require.True(t, ok)
				require.WithinDuration(t, deadline, at, time.Second)
				require.Nil(t, ctx.Value(private{}), "values of the caller's context stay there")
			}}))
			ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), private{}, 1), deadline)
			defer cancel()
			var header metadata.MD
			req := &redactorv1.RedactRequest{Texts: []string{"a"}}
			resp, err := c.Redact(metadata.AppendToOutgoingContext(ctx, "say", "hello"), req, grpc.Header(&header))
			require.NoError(t, err)
			require.Equal(t, []string{"hello"}, header.Get("said"))
			got.Texts[0] = "changed"
			require.Equal(t, []string{"a"}, req.GetTexts(), "messages are copied")
			require.Equal(t, []string{"a"}, resp.GetTexts())
		})
	}
}

func TestStream_CarriesMessagesBothWays(t *testing.T) {
	t.Parallel()
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := redactorv1.NewRedactorClient(connect(t, echo{})).RedactStream(t.Context())
			require.NoError(t, err)
			for range 3 {
				require.NoError(t, s.Send(&redactorv1.RedactStreamRequest{}))
				_, err = s.Recv()
				require.NoError(t, err)
			}
			require.NoError(t, s.CloseSend())
			_, err = s.Recv()
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// waiter blocks until its context ends.
type waiter struct {
	redactorv1.UnimplementedRedactorServer
	entered chan struct{}
}

func (w waiter) Redact(ctx context.Context, _ *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	w.entered <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (w waiter) RedactStream(s grpc.BidiStreamingServer[redactorv1.RedactStreamRequest, redactorv1.RedactStreamResponse]) error {
	w.entered <- struct{}{}
	<-s.Context().Done()
	return s.Context().Err()
}

// Callers of a stopping server get a retryable error, not a context error.
func TestLocal_EndsItsCallsWhenItStops(t *testing.T) {
	t.Parallel()
	w := waiter{entered: make(chan struct{})}
	conn, stop := local(t, w)
	c := redactorv1.NewRedactorClient(conn)
	errs := make(chan error, 2)
	go func() {
		_, err := c.Redact(t.Context(), &redactorv1.RedactRequest{})
		errs <- err
	}()
	<-w.entered
	s, err := c.RedactStream(t.Context())
	require.NoError(t, err)
	<-w.entered
	stop()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(<-errs))
	_, err = s.Recv()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	_, err = c.Redact(t.Context(), &redactorv1.RedactRequest{})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "and no call begins")
}

func TestLocal_CallsWaitUntilItServes(t *testing.T) {
	t.Parallel()
	l := rpc.NewLocal(slog.New(slog.DiscardHandler), nil, nil)
	redactorv1.RegisterRedactorServer(l, service{fail: func() error { return nil }})
	c := redactorv1.NewRedactorClient(l)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Redact(gone, &redactorv1.RedactRequest{})
	require.ErrorIs(t, err, context.Canceled)
	answered := make(chan error, 1)
	go func() {
		_, err := c.Redact(t.Context(), &redactorv1.RedactRequest{})
		answered <- err
	}()
	start(t, l)
	require.NoError(t, <-answered)
}

func TestCall_EndsWithTheCallersContext(t *testing.T) {
	t.Parallel()
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := waiter{entered: make(chan struct{}, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-w.entered; cancel() }()
			_, err := redactorv1.NewRedactorClient(connect(t, w)).Redact(ctx, &redactorv1.RedactRequest{})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// talkative answers with metadata, and with an error.
type talkative struct {
	redactorv1.UnimplementedRedactorServer
}

func (talkative) Redact(ctx context.Context, _ *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	if err := errors.Join(
		grpc.SetHeader(ctx, metadata.Pairs("h", "1")), grpc.SetHeader(ctx, metadata.Pairs("h", "2")), grpc.SetTrailer(ctx, metadata.Pairs("t", "3")),
	); err != nil {
		return nil, err
	}
	return nil, fault.New(fault.NotFound, "no such thing")
}

func TestCall_MetadataArrivesWithAnError(t *testing.T) {
	t.Parallel()
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var header, trailer metadata.MD
			_, err := redactorv1.NewRedactorClient(connect(t, talkative{})).
				Redact(t.Context(), &redactorv1.RedactRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
			require.Equal(t, fault.NotFound, fault.CodeOf(err))
			require.Equal(t, []string{"1", "2"}, header.Get("h"))
			require.Equal(t, []string{"3"}, trailer.Get("t"))
		})
	}
}

func TestLocal_RefusesAMethodThatItDoesNotServe(t *testing.T) {
	t.Parallel()
	conn, _ := local(t, waiter{})
	err := conn.Invoke(t.Context(), "/waybill.redactor.v1.Redactor/None", &redactorv1.RedactRequest{}, &redactorv1.RedactResponse{})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// Measures one call, locally and over an in-memory network.
func BenchmarkCall(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	l := rpc.NewLocal(quiet, nil, nil)
	redactorv1.RegisterRedactorServer(l, service{fail: func() error { return nil }})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx) }()
	c := redactorv1.NewRedactorClient(l)
	req := &redactorv1.RedactRequest{Texts: []string{"some text to redact, as long as a line"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Redact(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	require.NoError(b, <-done)
}
