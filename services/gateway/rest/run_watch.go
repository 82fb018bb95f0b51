package rest

import (
	"context"
	"net/http"

	"google.golang.org/grpc/metadata"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// runEventName is the SSE event of a changed row.
const runEventName = "run"

// ServeWatch answers GET /v1/runs:watch with the rows of the run list that change while the
// stream is open. The events have no ids: a client that reconnects lists the runs again.
func (s *EventStreams) ServeWatch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(r.Context(), "authorization", r.Header.Get("Authorization")))
	defer cancel()
	if err := s.serveWatch(ctx, w, r); err != nil {
		s.Fail(w, s.Logger, err)
	}
}

func (s *EventStreams) serveWatch(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	in, err := s.Host.WatchRuns(ctx, &hostv1.WatchRunsRequest{})
	if err != nil {
		return err
	}
	if _, err := awaitAccepted(in); err != nil {
		return err
	}
	f, ok := s.open(w, r, "no-store")
	if !ok {
		return nil
	}
	s.pump(ctx, f, func() (frame, error) {
		res, err := in.Recv()
		if err != nil {
			return frame{}, err
		}
		b, err := wirejson.Append([]byte("event: "+runEventName+"\ndata: "), res.GetRun())
		return frame{size: len(b), render: func() []byte { return append(b, "\n\n"...) }}, err
	})
	return nil
}
