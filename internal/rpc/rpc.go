// Package rpc makes gRPC servers and clients that behave alike everywhere: one
// interceptor chain, one mapping of errors, one set of metadata.
//
// A *fault.Error that a handler returns crosses the wire as a status whose only
// detail is the canonical error envelope, and comes back as a *fault.Error on
// the other side. Any other error is logged in full under an id and answered as
// internal with that id only.
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

// MaxMessageBytes bounds one message between services: a page of 5,000 events,
// or a definition, with room to spare.
const MaxMessageBytes = 64 << 20

// defaultDeadline bounds a call whose caller set none, so that no call waits forever.
const defaultDeadline = 30 * time.Second

// NewServer makes a server with the common interceptors; extra run inside
// them, in order, around the handlers.
func NewServer(log *slog.Logger, unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor, opts ...grpc.ServerOption) *grpc.Server {
	u := append([]grpc.UnaryServerInterceptor{unaryErrors(log, false)}, unary...)
	s := append([]grpc.StreamServerInterceptor{streamErrors(log, false)}, stream...)
	opts = append([]grpc.ServerOption{
		grpc.InTapHandle(wellFormed),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return Unserved() }),
		grpc.ChainUnaryInterceptor(u...),
		grpc.ChainStreamInterceptor(s...),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		// One connection carries every stream of a gateway.
		grpc.MaxConcurrentStreams(1 << 20),
		// Handlers' stacks are deep; workers keep theirs from call to call. A call
		// that finds no free worker gets a goroutine of its own.
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))), //nolint:gosec // G115: a small number
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: goneEvery, Timeout: goneWithin}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}, opts...)
	return grpc.NewServer(opts...)
}

// errUnserved marks the fault of a method that this host does not serve: the one whose gRPC
// status is not that of its code (OpenWOP host contract §9.4).
var errUnserved = errors.New("method not served")

// Unserved is the answer to a call of what the host does not serve. gRPC's own would repeat
// the name, which is the caller's and may be anything (OpenWOP envelope contract §11,
// sinks).
func Unserved() error {
	return fault.New(fault.NotFound, "this host does not serve the method").Wrap(errUnserved)
}

// wellFormed refuses names that gRPC refuses before it looks for a handler, repeating them.
func wellFormed(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.LastIndexByte(info.FullMethodName, '/') <= 0 {
		return nil, status.Error(codes.Unimplemented, "the name of the method is malformed")
	}
	return ctx, nil
}

// A server that is silent, because it hangs or the way to it is cut, is left after aliveEvery and
// aliveWithin: a call on its connection would wait for its deadline, and a stream, which has none, for
// ever. Servers bear with pings as often as every ten seconds.
const (
	aliveEvery  = 15 * time.Second
	aliveWithin = 10 * time.Second
)

// A client that is gone, and could not say so, is let go after goneEvery and goneWithin: a stream to
// which nothing is sent would have its place for two hours.
const (
	goneEvery  = 30 * time.Second
	goneWithin = 20 * time.Second
)

// A server that was away for long is tried again no later than maxBackoff, and some, after a try
// that failed; gRPC's own bound is two minutes. A try that nobody answers ends after connectTry.
const (
	maxBackoff = 5 * time.Second
	connectTry = 10 * time.Second
)

// ClientOptions are the dial options every client of ours uses.
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

// unaryErrors makes statuses of errors. within: who gets them is in this process.
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

// recovered turns a panic of a handler into an internal error; the process and
// its other requests live on.
func recovered(log *slog.Logger, method string, within bool, p any) error {
	e, id := internalError()
	log.Error("panic in handler", "method", method, "correlation_id", id, "panic", obs.Panic(p), "stack", string(debug.Stack()))
	return ToStatus(e, within)
}

// grpcOwn begins the methods of gRPC's own services, health checks and
// reflection. What their statuses mean is laid down by them: NOT_FOUND, say, for
// the health of an unknown service.
const grpcOwn = "/grpc."

func serverError(ctx context.Context, log *slog.Logger, method string, within bool, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller has gone or its deadline passed: nobody reads the details
		return contextStatus(ctx.Err())
	}
	e, ok := fault.As(err)
	if _, isStatus := status.FromError(err); !ok && isStatus && strings.HasPrefix(method, grpcOwn) {
		return err
	}
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		// The caller has time left: somebody whom the handler asked was too slow.
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

// faultStream turns the statuses of a stream into faults.
type faultStream struct{ grpc.ClientStream }

func (s faultStream) RecvMsg(m any) error { return FromStatus(s.ClientStream.RecvMsg(m)) }
func (s faultStream) SendMsg(m any) error { return FromStatus(s.ClientStream.SendMsg(m)) }
