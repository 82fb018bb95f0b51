package admission

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
)

// ObserveStarts wraps a dispatcher client so that the gate measures its starts.
func (g *Gate) ObserveStarts(d dispatcherv1.DispatcherClient) dispatcherv1.DispatcherClient {
	return observed{d, g.limiter}
}

type observed struct {
	dispatcherv1.DispatcherClient
	limiter *StartLimiter
}

// StartRun starts a run.
func (o observed) StartRun(ctx context.Context, req *dispatcherv1.StartRunRequest, opts ...grpc.CallOption) (*dispatcherv1.StartRunResponse, error) {
	ended := o.limiter.Began()
	res, err := o.DispatcherClient.StartRun(ctx, req, opts...)
	ended(beginDelay(res.GetBeginDelayMs()), !overloaded(err))
	return res, err
}

// ForkRun starts a run from another run's history.
func (o observed) ForkRun(ctx context.Context, req *dispatcherv1.ForkRunRequest, opts ...grpc.CallOption) (*dispatcherv1.ForkRunResponse, error) {
	ended := o.limiter.Began()
	res, err := o.DispatcherClient.ForkRun(ctx, req, opts...)
	ended(beginDelay(res.GetBeginDelayMs()), !overloaded(err))
	return res, err
}

func beginDelay(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// overloaded reports whether a dispatcher rejected a start that it may accept later.
func overloaded(err error) bool {
	return fault.CodeOf(err) == fault.ServiceUnavailable || errors.Is(err, context.DeadlineExceeded)
}
