package engine

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// WatchRuns sends the rows of the caller's runs that change after the headers were sent.
// After a disconnect the client lists the runs again; no state is lost.
func (s *Service) WatchRuns(_ *hostv1.WatchRunsRequest, out grpc.ServerStreamingServer[hostv1.WatchRunsResponse]) error {
	tenant := auth.From(out.Context()).Tenant
	if !s.streams.Take(tenant, 1) {
		return errTooManyStreams(s.streams.Limit())
	}
	defer s.streams.Give(tenant, 1)
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	in, err := s.deps.EventLog.WatchRuns(ctx, &eventlogv1.WatchRunsRequest{Tenant: auth.From(ctx).Tenant})
	if err != nil {
		return err
	}
	// The server sends headers when it watches; otherwise the next receive returns the
	// error.
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
			return streamError(err)
		}
		if err := out.Send(&hostv1.WatchRunsResponse{Run: s.runSummary(res.GetRun(), blocked{})}); err != nil {
			return err
		}
	}
}
