package seam

import (
	"bytes"
	"context"
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// ledger decides dedup for one request: priors first, then the persisted store,
// then the seam's own memory. It records into the latter two, and projects.
type ledger struct {
	store  Store
	log    TestLog
	tenant string
	req    *Request
}

// Recall gives the outcome decided before, whatever its status.
func (l *ledger) Recall(ctx context.Context, _ accept.Place, correlationID string) (*accept.Record, error) {
	for _, p := range l.req.PriorCorrelations {
		if p.CorrelationID == correlationID {
			return recorded(Kept{EnvelopeType: p.EnvelopeType, Outcome: p.Outcome})
		}
	}
	for _, k := range l.keys(correlationID) {
		kept, found, err := l.store.Load(ctx, k)
		if err != nil {
			return nil, err
		}
		if found {
			return recorded(kept)
		}
	}
	return nil, nil
}

// recorded turns a kept outcome into a record; a prior without an outcome is
// something the caller must mend.
func recorded(kept Kept) (*accept.Record, error) {
	if len(kept.Outcome) == 0 || bytes.Equal(kept.Outcome, []byte("null")) {
		return nil, badRequest("priorCorrelations: every entry needs an outcome")
	}
	return &accept.Record{Type: kept.EnvelopeType, Outcome: kept.Outcome}, nil
}

// keys lists where an outcome may be kept, most important first.
func (l *ledger) keys(correlationID string) []Key {
	own := Key{Tenant: l.tenant, CorrelationID: correlationID}
	if k, ok := l.persisted(correlationID); ok {
		return []Key{k, own}
	}
	return []Key{own}
}

// persisted names the place in the run's store, if the request wants one.
func (l *ledger) persisted(correlationID string) (Key, bool) {
	if l.req.PersistedDedup == nil {
		return Key{}, false
	}
	return Key{Tenant: l.tenant, RunID: l.req.PersistedDedup.RunID, CorrelationID: correlationID}, true
}

// Record projects the events and keeps the outcome.
func (l *ledger) Record(ctx context.Context, _ accept.Place, e accept.Entry) (*accept.Record, error) {
	events, err := l.projectOnce(ctx, e)
	if err != nil {
		return nil, err
	}
	outcome := accept.NewAcceptance(e.EnvelopeID, e.Trust, events)
	if l.req.ByokCanaries != nil {
		outcome.RedactionCount, outcome.RedactedPayload = &e.Redactions, e.Payload
	}
	doc, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	kept := Kept{EnvelopeType: e.Type, Outcome: doc}
	for _, k := range l.keys(e.CorrelationID) {
		first, err := l.store.Save(ctx, k, kept)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(first.Outcome, doc) {
			return nil, accept.ErrRaced // another process was faster: theirs is the outcome
		}
	}
	return &accept.Record{Type: e.Type, Outcome: doc, Payload: e.Payload, Events: events}, nil
}

// refused keeps the outcome of a refusal in the run's store, which holds
// outcomes of any status (the seam's own memory holds accepted ones only), and
// projects its events. It gives the outcome that counts: another process may have
// been faster.
func (l *ledger) refused(ctx context.Context, res *accept.Result) (json.RawMessage, error) {
	if k, ok := l.persisted(res.Facts.CorrelationID); ok && k.CorrelationID != "" && res.Refusal.Code != fault.EnvelopeCorrelationClash {
		first, err := l.store.Save(ctx, k, Kept{EnvelopeType: res.Facts.Kind, Outcome: res.Outcome})
		if err != nil || !bytes.Equal(first.Outcome, res.Outcome) {
			return first.Outcome, err
		}
	}
	drafts, err := refusalDrafts(res.Refusal, res.Facts)
	if err != nil {
		return nil, err
	}
	if _, err = l.project(ctx, drafts); err != nil {
		return nil, err
	}
	return res.Outcome, l.trace(ctx, res.Facts)
}

// project writes events into the test log, if the request names one.
func (l *ledger) project(ctx context.Context, drafts []wire.Draft) ([]wire.Event, error) {
	if l.req.ProjectTo == nil || len(drafts) == 0 {
		return nil, nil
	}
	return l.log.Append(ctx, l.tenant, l.req.ProjectTo.RunID, drafts)
}

// projectOnce writes what an accepted envelope causes. Whoever did it before and
// did not come to keep the outcome, or is at it now, has written the same: the
// outcome must name those events.
func (l *ledger) projectOnce(ctx context.Context, e accept.Entry) ([]wire.Event, error) {
	if l.req.ProjectTo == nil || len(e.Drafts) == 0 {
		return nil, nil
	}
	return l.log.AppendOnce(ctx, l.tenant, l.req.ProjectTo.RunID, e.CorrelationID, e.Drafts)
}

// trace writes the span into the test log, if the request names one.
func (l *ledger) trace(ctx context.Context, f accept.Facts) error {
	if l.req.ProjectTo == nil {
		return nil
	}
	return l.log.Trace(ctx, l.tenant, l.req.ProjectTo.RunID, Span{
		Name: accept.SpanName, EnvelopeID: f.EnvelopeID, Attributes: f.Attributes(),
	})
}
