package engine

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// WatchRuns tells of runs of the caller's tenant whose row changes, from when the headers
// go out. A stream that ends has lost nothing that a list does not show.
func (s *Service) WatchRuns(_ *hostv1.WatchRunsRequest, out grpc.ServerStreamingServer[hostv1.WatchRunsResponse]) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return errTooManyStreams(cap(s.streams))
	}
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	in, err := s.deps.EventLog.WatchRuns(ctx, &eventlogv1.WatchRunsRequest{Tenant: auth.From(ctx).Tenant})
	if err != nil {
		return err
	}
	// Headers say that every change from now on will be told; without them the error
	// follows.
	md, err := in.Header()
	if err != nil {
		return err
	}
	if len(md) > 0 {
		if err := out.SendHeader(metadata.Pairs(MetaStreaming, "1")); err != nil {
			return err
		}
	}
	for {
		res, err := in.Recv()
		if err != nil {
			return endOf(err)
		}
		if err := out.Send(&hostv1.WatchRunsResponse{Run: s.row(res.GetRun(), blocked{})}); err != nil {
			return err
		}
	}
}
