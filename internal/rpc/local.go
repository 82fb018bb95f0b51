package rpc

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/fullstorydev/grpchan"
	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Local combines a server and the connection to it, for services that share a process. A call
// passes the same interceptors on both sides as over a network: messages are copied, deadlines and
// metadata are passed on, errors travel as statuses. Only HTTP/2 is omitted.
type Local struct {
	methods map[string]unaryMethod // by full name
	chain   grpc.UnaryServerInterceptor
	cloner  cloner
	streams grpc.ClientConnInterface
	channel *inprocgrpc.Channel // of streams

	serving chan struct{}   // closed when calls are accepted
	life    context.Context //nolint:containedctx // ends when no more calls are accepted
	end     context.CancelFunc
	mu      sync.Mutex // no call starts while life ends
	calls   sync.WaitGroup
}

// NewLocal returns a server with the interceptors of NewServer. Calls wait until it serves.
func NewLocal(log *slog.Logger, unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) *Local {
	l := &Local{
		methods: map[string]unaryMethod{},
		chain:   chainUnary(append([]grpc.UnaryServerInterceptor{unaryErrors(log, true)}, unary...)),
		channel: (&inprocgrpc.Channel{}).WithCloner(cloner{}),
		serving: make(chan struct{}),
	}
	l.life, l.end = context.WithCancel(context.Background())
	l.channel.WithServerStreamInterceptor(chainStream(append([]grpc.StreamServerInterceptor{l.stream, streamErrors(log, true)}, stream...)))
	l.streams = grpchan.InterceptClientConn(l.channel, nil, clientStream)
	return l
}

// RegisterService registers a service's handlers, before Serve.
func (l *Local) RegisterService(d *grpc.ServiceDesc, impl any) {
	l.channel.RegisterService(d, impl)
	for _, m := range d.Methods {
		l.methods["/"+d.ServiceName+"/"+m.MethodName] = unaryMethod{impl: impl, handle: m.Handler}
	}
}

// NewStream implements grpc.ClientConnInterface.
func (l *Local) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.streams.NewStream(ctx, d, method, opts...)
}

// Serve accepts calls until ctx ends. Then it cancels those in progress and returns when their
// handlers have returned.
func (l *Local) Serve(ctx context.Context) error {
	close(l.serving)
	<-ctx.Done()
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.calls.Wait()
	return nil
}

// errStopped is the error of calls to a stopped server.
var errStopped = status.Error(codes.Unavailable, "the service has stopped")

// begin admits a call; done must be called when its handler has returned.
func (l *Local) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	select {
	case <-l.serving:
	case <-ctx.Done():
		return nil, nil, contextStatus(ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return nil, nil, errStopped
	}
	l.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel(); l.calls.Done() }, nil
}

func (l *Local) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, done, err := l.begin(ss.Context())
	if err != nil {
		return err
	}
	defer done()
	return l.ended(next(srv, stoppable{ss, ctx}))
}

// ended distinguishes a call ended by the server from one ended by its caller.
func (l *Local) ended(err error) error {
	if err != nil && l.life.Err() != nil && status.Code(err) == codes.Canceled {
		return errStopped
	}
	return err
}

// stoppable is a stream whose context ends with the server.
type stoppable struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream's context is a member by its interface
}

func (s stoppable) Context() context.Context { return s.ctx }

func chainUnary(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		for _, i := range slices.Backward(all) {
			next := h
			h = func(ctx context.Context, req any) (any, error) { return i(ctx, req, info, next) }
		}
		return h(ctx, req)
	}
}

func chainStream(all []grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		for _, i := range slices.Backward(all) {
			next := h
			h = func(srv any, ss grpc.ServerStream) error { return i(srv, ss, info, next) }
		}
		return h(srv, ss)
	}
}
