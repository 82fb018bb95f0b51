package host

import (
	"context"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/gateway/auth"
)

func (h *Host) buildEventLog(ctx context.Context, _ []auth.Spec) error {
	model, err := h.openReadModel(ctx)
	if err != nil {
		return err
	}
	if h.events, err = eventlog.New(eventlog.DefaultConfig(), eventlog.Deps{Log: h.stores.Log, Store: model, Logger: h.Log}); err != nil {
		return err
	}
	h.Group.Start(lifecycle.Part{Name: "event log", Run: h.events.Run})
	h.Clients.events = eventlogv1.NewEventLogClient(h.serve("event log", h.events.Register))
	return nil
}
