package eventlog

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/store"
)

// metaWatching is in the headers of a watch; an answer without it is an error.
const metaWatching = "waybill-watching"

// WatchRuns streams changed rows of a tenant, starting when its headers are sent. A reader that is
// too slow is disconnected and must list again.
func (s *Service) WatchRuns(req *eventlogv1.WatchRunsRequest, stream grpc.ServerStreamingServer[eventlogv1.WatchRunsResponse]) error {
	if !subject.Token(req.GetTenant()) {
		return fault.New(fault.ValidationError, "tenant: want letters, digits, _ or -")
	}
	watch := s.hub.Watch(req.GetTenant())
	defer watch.Close()
	if err := stream.SendHeader(metadata.Pairs(metaWatching, "1")); err != nil {
		return err
	}
	for {
		changes, err := watch.Next(stream.Context())
		switch {
		case errors.Is(err, hub.ErrLagged):
			return unavailable("changes of runs were lost, list them")
		case errors.Is(err, hub.ErrClosed):
			return unavailable("the host stops")
		case err != nil:
			return err
		}
		for _, c := range changes {
			row, ok, err := s.changed(stream.Context(), c)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := stream.Send(&eventlogv1.WatchRunsResponse{Run: summary(row)}); err != nil {
				return err
			}
		}
	}
}

// changed returns the row of a change; ok is false if the run is gone.
func (s *Service) changed(ctx context.Context, c hub.Change) (row store.Run, ok bool, err error) {
	if c.Row != nil {
		return *c.Row, true, nil
	}
	row, err = s.store.Run(ctx, c.Key)
	if errors.Is(err, store.ErrNotFound) {
		return row, false, nil // the store is being rebuilt; the run's frames will be published again
	}
	if err != nil {
		return row, false, s.failure(c.Key, err)
	}
	return row, true, nil
}
