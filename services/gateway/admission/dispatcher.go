package admission

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
)

// Watched is a dispatcher whose answers to starts the gate's limiter learns from.
func (g *Gate) Watched(d dispatcherv1.DispatcherClient) dispatcherv1.DispatcherClient {
	return watched{d, g.limiter}
}

type watched struct {
	dispatcherv1.DispatcherClient
	limiter *Limiter
}

// StartRun starts a run.
func (w watched) StartRun(ctx context.Context, req *dispatcherv1.StartRunRequest, opts ...grpc.CallOption) (*dispatcherv1.StartRunResponse, error) {
	ended := w.limiter.Began()
	res, err := w.DispatcherClient.StartRun(ctx, req, opts...)
	ended(told(res.GetBeginDelayMs()), !overtaxed(err))
	return res, err
}

// ForkRun starts a run that goes on from another's history.
func (w watched) ForkRun(ctx context.Context, req *dispatcherv1.ForkRunRequest, opts ...grpc.CallOption) (*dispatcherv1.ForkRunResponse, error) {
	ended := w.limiter.Began()
	res, err := w.DispatcherClient.ForkRun(ctx, req, opts...)
	ended(told(res.GetBeginDelayMs()), !overtaxed(err))
	return res, err
}

func told(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// overtaxed reports whether a dispatcher could not take a start that it might take later.
func overtaxed(err error) bool {
	return fault.CodeOf(err) == fault.ServiceUnavailable || errors.Is(err, context.DeadlineExceeded)
}
