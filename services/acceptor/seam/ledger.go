package seam

import (
	"bytes"
	"context"
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// ledger is the ledger of one request. It looks an outcome up in the request's priors,
// then in the run's store, then in the seam's own store. It records into both stores,
// and projects the events into the test log.
type ledger struct {
	store  Store
	log    TestLog
	tenant string
	req    *Request
}

// Lookup returns the earlier outcome, of any status.
func (l *ledger) Lookup(ctx context.Context, _ accept.Target, correlationID string) (*accept.Record, error) {
	for _, p := range l.req.PriorCorrelations {
		if p.CorrelationID == correlationID {
			return recordOf(StoredOutcome{EnvelopeType: p.EnvelopeType, Outcome: p.Outcome})
		}
	}
	for _, k := range l.keys(correlationID) {
		stored, found, err := l.store.Load(ctx, k)
		if err != nil {
			return nil, err
		}
		if found {
			return recordOf(stored)
		}
	}
	return nil, nil
}

// recordOf turns a stored outcome into a record. A prior without an outcome is an
// error of the caller.
func recordOf(stored StoredOutcome) (*accept.Record, error) {
	if len(stored.Outcome) == 0 || bytes.Equal(stored.Outcome, []byte("null")) {
		return nil, badRequest("priorCorrelations: every entry needs an outcome")
	}
	return &accept.Record{Type: stored.EnvelopeType, Outcome: stored.Outcome}, nil
}

// keys returns the keys under which an outcome may be stored, first match first.
func (l *ledger) keys(correlationID string) []Key {
	own := Key{Tenant: l.tenant, CorrelationID: correlationID}
	if k, ok := l.persistedKey(correlationID); ok {
		return []Key{k, own}
	}
	return []Key{own}
}

// persistedKey returns the key in the run's store, if the request names a run.
func (l *ledger) persistedKey(correlationID string) (Key, bool) {
	if l.req.PersistedDedup == nil {
		return Key{}, false
	}
	return Key{Tenant: l.tenant, RunID: l.req.PersistedDedup.RunID, CorrelationID: correlationID}, true
}

// Record projects the events and stores the outcome.
func (l *ledger) Record(ctx context.Context, _ accept.Target, e accept.Entry) (*accept.Record, error) {
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
	stored := StoredOutcome{EnvelopeType: e.Type, Outcome: doc}
	for _, k := range l.keys(e.CorrelationID) {
		first, err := l.store.Save(ctx, k, stored)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(first.Outcome, doc) {
			return nil, accept.ErrRaced // another process stored its outcome first
		}
	}
	return &accept.Record{Type: e.Type, Outcome: doc, Payload: e.Payload, Events: events}, nil
}

// recordRefusal stores the outcome of a refusal in the run's store and projects its
// events. The run's store has outcomes of any status, the seam's own store only
// accepted ones. It returns the stored outcome, which may be that of another process.
func (l *ledger) recordRefusal(ctx context.Context, res *accept.Result) (json.RawMessage, error) {
	if k, ok := l.persistedKey(res.Attributes.CorrelationID); ok && k.CorrelationID != "" && res.Refusal.Code != fault.EnvelopeCorrelationClash {
		first, err := l.store.Save(ctx, k, StoredOutcome{EnvelopeType: res.Attributes.Kind, Outcome: res.Outcome})
		if err != nil || !bytes.Equal(first.Outcome, res.Outcome) {
			return first.Outcome, err
		}
	}
	drafts, err := refusalDrafts(res.Refusal, res.Attributes)
	if err != nil {
		return nil, err
	}
	if _, err = l.project(ctx, drafts); err != nil {
		return nil, err
	}
	return res.Outcome, l.trace(ctx, res.Attributes)
}

// project writes events into the test log, if the request names one.
func (l *ledger) project(ctx context.Context, drafts []wire.Draft) ([]wire.Event, error) {
	if l.req.ProjectTo == nil || len(drafts) == 0 {
		return nil, nil
	}
	return l.log.Append(ctx, l.tenant, l.req.ProjectTo.RunID, drafts)
}

// projectOnce writes the events of an accepted envelope once. A request that crashed
// before it stored the outcome, or a concurrent one, may have written them. The outcome
// must name the events in the log.
func (l *ledger) projectOnce(ctx context.Context, e accept.Entry) ([]wire.Event, error) {
	if l.req.ProjectTo == nil || len(e.Drafts) == 0 {
		return nil, nil
	}
	return l.log.AppendOnce(ctx, l.tenant, l.req.ProjectTo.RunID, e.CorrelationID, e.Drafts)
}

// trace writes the span into the test log, if the request names one.
func (l *ledger) trace(ctx context.Context, f accept.Attributes) error {
	if l.req.ProjectTo == nil {
		return nil
	}
	return l.log.Trace(ctx, l.tenant, l.req.ProjectTo.RunID, Span{
		Name: accept.SpanName, EnvelopeID: f.EnvelopeID, Attributes: f.Span(),
	})
}
