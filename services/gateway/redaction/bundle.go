package redaction

import (
	"context"
	"fmt"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// BundleExporter exports debug bundles. The event log builds a bundle from recorded events,
// which were redacted with the secrets known at that time. The exporter redacts the whole
// bundle again, because people attach bundles to tickets (OpenWOP envelope contract §11,
// sinks; host contract §10.3, §10.4). It is safe for concurrent use.
type BundleExporter struct {
	EventLog eventlogv1.EventLogClient
	Redactor redactorv1.RedactorClient
}

const (
	// MaxBundleBytes is the size limit of an exported bundle.
	MaxBundleBytes = 8 << 20
	// maxBundleTries limits how often a bundle is rebuilt smaller, because redaction
	// markers can be longer than the secrets they replace.
	maxBundleTries = 6
	// shrinkPercent makes each rebuild smaller than the measured growth requires:
	// markers are not spread evenly.
	shrinkPercent = 95
)

// Export returns the bundle of a run with at most maxEvents events; 0 includes as many as
// fit. Errors: those of the event log; fault.ServiceUnavailable if the redactor is
// unavailable.
func (x BundleExporter) Export(ctx context.Context, tenant, runID string, maxEvents int32) ([]byte, error) {
	maxBytes := int64(MaxBundleBytes)
	for range maxBundleTries {
		res, err := x.EventLog.ExportRun(ctx, &eventlogv1.ExportRunRequest{
			Tenant:    tenant,
			RunId:     runID,
			MaxEvents: maxEvents,
			MaxBytes:  maxBytes,
		})
		if err != nil {
			return nil, err
		}
		doc, err := x.RedactDocument(ctx, tenant, runID, res.GetBundle())
		if err != nil {
			return nil, err
		}
		if len(doc) <= MaxBundleBytes {
			return doc, nil
		}
		maxBytes = maxBytes * MaxBundleBytes / int64(len(doc)) * shrinkPercent / 100
	}
	return nil, fmt.Errorf("debug bundle of run %s: its redaction markers alone exceed %d bytes", runID, MaxBundleBytes)
}

// RedactDocument removes secrets from a document about a run.
func (x BundleExporter) RedactDocument(ctx context.Context, tenant, runID string, doc []byte) ([]byte, error) {
	req := &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenant, RunId: runID}, Documents: [][]byte{doc}}
	res, err := x.Redactor.Redact(ctx, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err // the caller has gone
	case err != nil || len(res.GetDocuments()) != 1:
		return nil, Unavailable("the bundle was not exported", err)
	}
	return res.GetDocuments()[0], nil
}
