package clients

import (
	"context"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Bundles exports debug bundles; see archiving.Bundles.
type Bundles struct {
	EventLog eventlogv1.EventLogClient
	Redactor Redactor
}

// Whole returns the bundle of a run with all its events. It is redacted once more, with the secrets of
// today, because it leaves the host (OpenWOP host contract §10.4).
func (b Bundles) Whole(ctx context.Context, run subject.Run) ([]byte, error) {
	res, err := b.EventLog.ExportRun(ctx, &eventlogv1.ExportRunRequest{Tenant: run.Tenant, RunId: run.RunID, Whole: true})
	if err != nil {
		return nil, err
	}
	docs, _, err := b.Redactor.Redact(ctx, run.Tenant, run.RunID, false, [][]byte{res.GetBundle()})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fault.New(fault.ServiceUnavailable, "the redactor is unavailable: the run was not archived; try again").After(time.Second).Wrap(err)
	}
	return docs[0], nil
}
