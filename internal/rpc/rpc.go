// Package rpc creates gRPC servers and clients with the same behavior everywhere: one interceptor
// chain, one mapping of errors, one set of metadata.
//
// A *fault.Error returned by a handler is sent as a status whose only detail is the canonical error
// envelope, and arrives as a *fault.Error. Any other error is logged in full under an id, and
// returned as an internal error with only that id.
package rpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/protocol/fault"
)

// MaxMessageBytes limits one message between services: a page of 5,000 events, or a definition,
// with a margin.
const MaxMessageBytes = 64 << 20

// defaultDeadline limits a call without a deadline.
const defaultDeadline = 30 * time.Second

// NewServer returns a server with the common interceptors; unary and stream run inside them, in
// order.
func NewServer(log *slog.Logger, unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor, opts ...grpc.ServerOption) *grpc.Server {
	// One connection carries every stream of a gateway.
	opts = append([]grpc.ServerOption{grpc.MaxConcurrentStreams(1 << 20)}, opts...)
	return newServer(log, wellFormed, unary, stream, opts)
}

// NewPublicServer returns a server for callers that are strangers. admit sees each call before its
// stream exists, and may limit its context. It must return a status. opts set the limits of
// connections.
func NewPublicServer(
	log *slog.Logger, admit tap.ServerInHandle, unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor, opts ...grpc.ServerOption,
) *grpc.Server {
	return newServer(log, func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if ctx, err := wellFormed(ctx, info); err != nil {
			return ctx, err
		}
		return admit(ctx, info)
	}, unary, stream, opts)
}

func newServer(
	log *slog.Logger, admit tap.ServerInHandle, unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor, opts []grpc.ServerOption,
) *grpc.Server {
	u := append([]grpc.UnaryServerInterceptor{unaryErrors(log, false)}, unary...)
	s := append([]grpc.StreamServerInterceptor{streamErrors(log, false)}, stream...)
	opts = append([]grpc.ServerOption{
		grpc.InTapHandle(admit),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return Unserved() }),
		grpc.ChainUnaryInterceptor(u...),
		grpc.ChainStreamInterceptor(s...),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		// Handlers have deep stacks, and workers keep theirs between calls. A call without a free
		// worker gets its own goroutine.
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))), //nolint:gosec // G115: a small number
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: goneEvery, Timeout: goneWithin}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}, opts...)
	return grpc.NewServer(opts...)
}

// errUnserved marks the fault of a method that this host does not serve: the only one whose gRPC
// status differs from that of its code (OpenWOP host contract §9.4).
var errUnserved = errors.New("method not served")

// Unserved returns the error for unknown methods. gRPC's own error would repeat the name, which the
// caller chose freely (OpenWOP envelope contract §11, sinks).
func Unserved() error {
	return fault.New(fault.NotFound, "this host does not serve the method").Wrap(errUnserved)
}

// wellFormed rejects malformed names before gRPC does, whose error would repeat them.
func wellFormed(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.LastIndexByte(info.FullMethodName, '/') <= 0 {
		return nil, status.Error(codes.Unimplemented, "the name of the method is malformed")
	}
	return ctx, nil
}

// A silent server, which hangs or is unreachable, is dropped after aliveEvery plus aliveWithin.
// Otherwise a call would wait for its deadline, and a stream, which has none, forever. Servers
// accept pings every ten seconds.
const (
	aliveEvery  = 15 * time.Second
	aliveWithin = 10 * time.Second
)

// A vanished client is dropped after goneEvery plus goneWithin. Otherwise an idle stream would hold
// its slot for two hours.
const (
	goneEvery  = 30 * time.Second
	goneWithin = 20 * time.Second
)

// An unavailable server is retried after at most about maxBackoff; gRPC's own limit is two minutes.
// A connection attempt without an answer ends after connectTry.
const (
	maxBackoff = 5 * time.Second
	connectTry = 10 * time.Second
)

// ClientOptions returns the dial options of all clients.
func ClientOptions() []grpc.DialOption {
	again := backoff.DefaultConfig
	again.MaxDelay = maxBackoff
	return []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveEvery, Timeout: aliveWithin}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: connectTry}),
		grpc.WithChainUnaryInterceptor(clientUnary),
		grpc.WithChainStreamInterceptor(clientStream),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(MaxMessageBytes),
			grpc.MaxCallSendMsgSize(MaxMessageBytes),
		),
	}
}

// unaryErrors converts errors to statuses. within: the caller is in this process.
func unaryErrors(log *slog.Logger, within bool) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = recovered(log, info.FullMethod, within, p)
			}
		}()
		resp, err = next(ctx, req)
		return resp, serverError(ctx, log, info.FullMethod, within, err)
	}
}

func streamErrors(log *slog.Logger, within bool) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = recovered(log, info.FullMethod, within, p)
			}
		}()
		return serverError(ss.Context(), log, info.FullMethod, within, next(srv, ss))
	}
}

// recovered converts a panic of a handler to an internal error; the process and its other requests
// continue.
func recovered(log *slog.Logger, method string, within bool, p any) error {
	e, id := internalError()
	log.Error("panic in handler", "method", method, "correlation_id", id, "panic", obs.Panic(p), "stack", string(debug.Stack()))
	return ToStatus(e, within)
}

// grpcOwn is the prefix of gRPC's own services, health checks and reflection. They define the
// meaning of their statuses, for example NOT_FOUND for the health of an unknown service.
const grpcOwn = "/grpc."

func serverError(ctx context.Context, log *slog.Logger, method string, within bool, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller has left or its deadline passed: no one reads the details
		return contextStatus(ctx.Err())
	}
	e, ok := fault.As(err)
	if _, isStatus := status.FromError(err); !ok && isStatus && strings.HasPrefix(method, grpcOwn) {
		return err
	}
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		// The caller has time left: a dependency of the handler was too slow.
		e, ok = fault.New(fault.ServiceUnavailable, "the host did not answer in time; try again").After(time.Second).Wrap(err), true
		log.Warn("handler too slow", "method", method, "error", err)
	}
	if !ok {
		var id string
		e, id = internalError()
		log.Error("handler failed", "method", method, "correlation_id", id, "error", err)
	}
	if errors.Is(e, errUnserved) {
		return statusOf(codes.Unimplemented, e, within)
	}
	return ToStatus(e, within)
}

func clientUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
	}
	return FromStatus(invoke(ctx, method, req, reply, cc, opts...))
}

func clientStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, FromStatus(err)
	}
	return faultStream{s}, nil
}

// faultStream converts the statuses of a stream to faults.
type faultStream struct{ grpc.ClientStream }

func (s faultStream) RecvMsg(m any) error { return FromStatus(s.ClientStream.RecvMsg(m)) }
func (s faultStream) SendMsg(m any) error { return FromStatus(s.ClientStream.SendMsg(m)) }
