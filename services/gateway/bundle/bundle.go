// Package bundle hands debug bundles out. The event log makes them of what was
// recorded; before one leaves, the redactor goes over all of it once more: events
// were searched for the secrets that were known when they were written, and a
// bundle is what people attach to tickets (OpenWOP envelope contract §11, sinks;
// host contract §10.3, §10.4).
package bundle

import (
	"context"
	"fmt"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
)

// Exporter exports bundles. It is safe for concurrent use.
type Exporter struct {
	EventLog eventlogv1.EventLogClient
	Redactor redactorv1.RedactorClient
}

const (
	// MaxBytes is the largest bundle that leaves.
	MaxBytes = 8 << 20
	// maxTries bounds how often a bundle is made anew because its markers are longer
	// than what they replace. Each is smaller in proportion.
	maxTries = 6
	// spare is what is left of a proportion, in percent: markers are not spread
	// evenly.
	spare = 95
)

// Export gives the bundle of a run with at most so many events; 0: all that fit.
// Errors: those of the event log, and fault.ServiceUnavailable without the
// redactor.
func (x Exporter) Export(ctx context.Context, tenant, runID string, maxEvents int32) ([]byte, error) {
	room := int64(MaxBytes)
	for range maxTries {
		res, err := x.EventLog.ExportRun(ctx, &eventlogv1.ExportRunRequest{Tenant: tenant, RunId: runID, MaxEvents: maxEvents, MaxBytes: room})
		if err != nil {
			return nil, err
		}
		doc, err := x.Clean(ctx, tenant, runID, res.GetBundle())
		if err != nil {
			return nil, err
		}
		if len(doc) <= MaxBytes {
			return doc, nil
		}
		room = room * MaxBytes / int64(len(doc)) * spare / 100
	}
	return nil, fmt.Errorf("debug bundle of run %s: its markers alone are larger than %d bytes", runID, MaxBytes)
}

// Clean takes the secrets out of a document that is about a run.
func (x Exporter) Clean(ctx context.Context, tenant, runID string, doc []byte) ([]byte, error) {
	req := &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}, Documents: [][]byte{doc}}
	res, err := x.Redactor.Redact(ctx, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err // whoever asked has gone
	case err != nil || len(res.GetDocuments()) != 1:
		return nil, fault.New(fault.ServiceUnavailable, "the redactor cannot be reached, and nothing is exported without it; try again").
			After(time.Second).Wrap(err)
	}
	return res.GetDocuments()[0], nil
}
