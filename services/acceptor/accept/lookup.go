package accept

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Lookup returns the recorded outcome of an envelope whose run has ended. It runs no
// step: the redactor has forgotten the run's secrets (OpenWOP envelope contract §11,
// registry), so nothing of the document may be shown. It reads only the document's
// type and correlationId.
//
// Errors when nothing was recorded: fault.RunTerminal, or Conflict if the caller's
// head is before the end. Further errors: as of Ledger.Lookup.
func (p *Pipeline) Lookup(ctx context.Context, req Request) (*Result, error) {
	kind, id := p.readIDs(req.Document)
	if id == "" {
		return nil, errEnded()
	}
	r, err := p.ledger.Lookup(ctx, req.Target, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("accept: lookup: %w", err)
	case r == nil:
		return nil, errMovedOn()
	}
	attrs := Attributes{CorrelationID: id, NodeID: nodeOf(r.Events), AdvertisedVersion: Unlisted, Trust: wire.Untrusted}
	if r.Type != kind {
		return lookupClash(attrs, r)
	}
	attrs.Kind, attrs.Outcome = r.Type, StatusOf(r.Outcome)
	return &Result{
		Outcome:    r.Outcome,
		Recalled:   true,
		Payload:    r.Payload,
		Events:     r.Events,
		Head:       r.Head,
		Attributes: attrs,
	}, nil
}

// readIDs reads type and correlationId of a document, which may contain an asset.
func (p *Pipeline) readIDs(doc []byte) (kind, correlationID string) {
	asset, refusal := (&execution{Pipeline: p}).measureAsset(doc)
	if refusal != nil {
		return "", ""
	}
	return readIDs(doc, asset)
}

// lookupClash refuses an envelope whose type is not the recorded one.
func lookupClash(attrs Attributes, r *Record) (*Result, error) {
	refusal := correlationClash()
	doc, err := json.Marshal(refusal)
	if err != nil {
		return nil, fmt.Errorf("accept: outcome: %w", err)
	}
	attrs.Outcome = refusal.Status
	return &Result{Outcome: doc, Refusal: refusal, Head: r.Head, Attributes: attrs}, nil
}

// nodeOf returns the node of an envelope's events.
func nodeOf(events []wire.Event) string {
	if len(events) == 0 {
		return ""
	}
	return events[0].NodeID
}

func errEnded() error {
	return fault.New(fault.RunTerminal, "the run has ended; it accepts no envelope")
}
