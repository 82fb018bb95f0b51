package sse

import (
	"context"
	"net/http"

	"google.golang.org/grpc/metadata"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// nameRun is the event of a row that has changed.
const nameRun = "run"

// ServeWatch answers GET /v1/runs:watch: the rows of the list that change while the stream
// is open. They have no ids: who comes back lists the runs again.
func (h *Handler) ServeWatch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(r.Context(), "authorization", r.Header.Get("Authorization")))
	defer cancel()
	if err := h.watch(ctx, w, r); err != nil {
		h.Fail(w, h.Logger, err)
	}
}

func (h *Handler) watch(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	in, err := h.Host.WatchRuns(ctx, &hostv1.WatchRunsRequest{})
	if err != nil {
		return err
	}
	if err := begun(in); err != nil {
		return err
	}
	f, ok := h.open(w, r, "no-store")
	if !ok {
		return nil
	}
	h.pump(ctx, f, func() ([]byte, error) {
		res, err := in.Recv()
		if err != nil {
			return nil, err
		}
		b, err := wirejson.Append([]byte("event: "+nameRun+"\ndata: "), res.GetRun())
		return append(b, "\n\n"...), err
	})
	return nil
}
