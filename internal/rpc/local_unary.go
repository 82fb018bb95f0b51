package rpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// unaryMethod is a handler of a registered service.
type unaryMethod struct {
	impl   any
	handle grpc.MethodHandler
}

// Invoke implements grpc.ClientConnInterface. The handler runs in the goroutine of the caller: a
// goroutine and a channel for each call would cost more than most handlers do.
func (l *Local) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	return clientUnary(ctx, method, req, resp, nil, l.call, opts...)
}

func (l *Local) call(ctx context.Context, method string, req, resp any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	m, ok := l.methods[method]
	if !ok {
		return status.Errorf(codes.Unimplemented, "method %s is not served", method)
	}
	within, done, err := l.begin(detached{ctx})
	if err != nil {
		return err
	}
	defer done()
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		within = metadata.NewIncomingContext(within, md)
	}
	a := &localAnswer{method: method}
	out, err := m.handle(m.impl, grpc.NewContextWithServerTransportStream(within, a), func(in any) error { return l.cloner.Copy(in, req) }, l.chain)
	a.deliver(opts)
	if err != nil {
		return l.ended(err)
	}
	return l.cloner.Copy(resp, out)
}

// detached is the context of a caller without its values: deadlines and cancellation cross a
// connection, values do not.
type detached struct{ context.Context } //nolint:containedctx // it is a context

func (detached) Value(any) any { return nil }

// AfterFunc makes contexts derived from this one cheap: context.WithCancel would start a goroutine.
func (d detached) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.Context, f) }

// localAnswer collects the metadata of an answer.
type localAnswer struct {
	method string

	mu              sync.Mutex // handlers may use goroutines
	header, trailer metadata.MD
}

// Method implements grpc.ServerTransportStream.
func (a *localAnswer) Method() string { return a.method }

// SetHeader implements grpc.ServerTransportStream.
func (a *localAnswer) SetHeader(md metadata.MD) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.header = metadata.Join(a.header, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream. The caller gets the header with the answer.
func (a *localAnswer) SendHeader(md metadata.MD) error { return a.SetHeader(md) }

// SetTrailer implements grpc.ServerTransportStream.
func (a *localAnswer) SetTrailer(md metadata.MD) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trailer = metadata.Join(a.trailer, md)
	return nil
}

// deliver stores the metadata where the caller's options ask for it.
func (a *localAnswer) deliver(opts []grpc.CallOption) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = a.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = a.trailer
		}
	}
}
