package seam

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// refusalDrafts are the events of a refusal, as a run's executor would write
// them (OpenWOP envelope contract §7, §8, §10).
func refusalDrafts(r *accept.Refusal, a accept.Attributes) ([]wire.Draft, error) {
	if a.NodeID == "" { // redacted: it contained a secret
		a.NodeID = defaultNode
	}
	var drafts []draft
	switch {
	case r.Code == fault.UntrustedBlocksApproval:
		return nil, nil // the approval stays open; no event advances it
	case r.Status == accept.Gated && r.Mode == accept.DiscardAndWarn:
		drafts = []draft{envelopeDiscarded(r, a)}
	case r.Status == accept.Gated:
		// The seam reports both gates as a violation of the contract (OpenWOP
		// envelope contract §24, C7).
		drafts = []draft{nodeFailed(a, fault.EnvelopeContractViolation, r, map[string]any{
			"refusedType": r.RefusedType, "acceptedTypes": r.AllowedKinds,
		})}
	case r.Status == accept.Breached:
		drafts = []draft{capBreached(r, a), nodeFailed(a, fault.CapBreached, r, map[string]any{"capKind": r.CapKind})}
	default:
		drafts = []draft{nodeFailed(a, r.Code, r, nil)}
	}
	return renderDrafts(drafts, a)
}

// draft is an event whose payload is not encoded yet.
type draft struct {
	kind    wire.EventType
	payload any
}

func renderDrafts(drafts []draft, a accept.Attributes) ([]wire.Draft, error) {
	out := make([]wire.Draft, 0, len(drafts))
	for _, d := range drafts {
		payload, err := json.Marshal(d.payload)
		if err != nil {
			return nil, err
		}
		out = append(out, wire.Draft{
			Type: d.kind, Payload: payload, NodeID: a.NodeID, CausationID: a.CorrelationID, Trust: a.Trust,
		})
	}
	return out, nil
}

func nodeFailed(a accept.Attributes, code fault.Code, r *accept.Refusal, details map[string]any) draft {
	return draft{wire.EventNodeFailed, map[string]any{
		"nodeId": a.NodeID,
		"error":  wire.NodeError{Code: string(code), Message: r.Reason(), Details: details},
	}}
}

func capBreached(r *accept.Refusal, a accept.Attributes) draft {
	return draft{wire.EventCapBreached, map[string]any{
		"kind": r.CapKind, "limit": r.Limit, "observed": r.Observed, "nodeId": a.NodeID,
	}}
}

func envelopeDiscarded(r *accept.Refusal, a accept.Attributes) draft {
	return draft{wire.EventLogAppended, map[string]any{
		"level": "warn", "message": "an envelope was discarded: " + r.Reason(), "nodeId": a.NodeID,
		"fields": map[string]any{"kind": r.RefusedType, "allowedKinds": slices.Clone(r.AllowedKinds), "refusalMode": r.Mode},
	}}
}
