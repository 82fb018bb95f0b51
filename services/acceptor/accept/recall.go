package accept

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Recall tells what was recorded of an envelope whose run has ended. It takes none of
// the steps: the run's secrets are forgotten with its end (OpenWOP envelope contract
// §11, registry), so nobody can take them out of the document, and not a word of it
// may be shown. Only its type and correlationId are looked at.
//
// Errors: fault.RunTerminal when nothing was recorded; Conflict the same, for a caller
// who has not read of the end yet; those of Ledger.Recall.
func (l *Pipeline) Recall(ctx context.Context, req Request) (*Result, error) {
	kind, id := l.named(req.Document)
	if id == "" {
		return nil, errEnded()
	}
	r, err := l.ledger.Recall(ctx, req.Place, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("accept: recall: %w", err)
	case r == nil:
		return nil, errMovedOn()
	}
	facts := Facts{CorrelationID: id, NodeID: nodeOf(r.Events), Floor: Unlisted, Trust: wire.Untrusted}
	if r.Type != kind {
		return clashed(facts, r)
	}
	facts.Kind, facts.Outcome = r.Type, StatusOf(r.Outcome)
	return &Result{Outcome: r.Outcome, Recalled: true, Payload: r.Payload, Events: r.Events, Head: r.Head, Facts: facts}, nil
}

// named are type and correlationId of a document, which may hold an asset.
func (l *Pipeline) named(doc []byte) (kind, correlationID string) {
	asset, refusal := (&passage{Pipeline: l}).measured(doc)
	if refusal != nil {
		return "", ""
	}
	return named(doc, asset)
}

// clashed refuses an envelope of another type than that which was recorded.
func clashed(facts Facts, r *Record) (*Result, error) {
	refusal := clash()
	doc, err := json.Marshal(refusal)
	if err != nil {
		return nil, fmt.Errorf("accept: outcome: %w", err)
	}
	facts.Outcome = refusal.Status
	return &Result{Outcome: doc, Refusal: refusal, Head: r.Head, Facts: facts}, nil
}

// nodeOf is the node that events are about.
func nodeOf(events []wire.Event) string {
	if len(events) == 0 {
		return ""
	}
	return events[0].NodeID
}

func errEnded() error { return fault.New(fault.RunTerminal, "the run has ended; nothing can follow") }
