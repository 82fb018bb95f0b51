package model

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// outbox holds the decided events of an emission that are not appended yet. They are appended with
// the next frame.
type outbox struct {
	nodeID string
	// trust is that of the prompt: the events can repeat parts of it.
	trust  wire.Trust
	events []wire.Draft
}

// add adds an event of the node.
func (o *outbox) add(t wire.EventType, payload any) {
	o.addDraft(draft(t, o.nodeID, wire.Trusted, payload))
}

// addCaused adds an event caused by an envelope (OpenWOP envelope contract §8, §10). cause is its
// correlationId.
func (o *outbox) addCaused(cause string, t wire.EventType, payload any) {
	d := draft(t, o.nodeID, wire.Trusted, payload)
	d.CausationID = cause
	o.addDraft(d)
}

// addDraft adds an event with the trust of the prompt.
func (o *outbox) addDraft(d wire.Draft) {
	if o.trust == wire.Untrusted {
		d.Trust = wire.Untrusted
	}
	o.events = append(o.events, d)
}

// flush appends the events.
func (o *outbox) flush(ctx context.Context, j Journal) error {
	if len(o.events) == 0 {
		return nil
	}
	err := j.Record(ctx, o.events...)
	o.events = nil
	return err
}

// failNode fails the node with the events decided so far.
func (o *outbox) failNode(e *wire.NodeError) verdict {
	return verdict{done: &Result{Drafts: o.events, Err: e}}
}

// completeNode completes the node with the events decided so far.
func (o *outbox) completeNode(out node.Output) verdict {
	return verdict{done: &Result{Drafts: o.events, Output: out}}
}
