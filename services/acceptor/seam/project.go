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
func refusalDrafts(r *accept.Refusal, f accept.Facts) ([]wire.Draft, error) {
	if f.NodeID == "" { // it held a secret
		f.NodeID = defaultNode
	}
	var drafts []draft
	switch {
	case r.Code == fault.UntrustedBlocksApproval:
		return nil, nil // the gate stays closed; no event advances it
	case r.Status == accept.Gated && r.Mode == accept.DiscardAndWarn:
		drafts = []draft{discarded(r, f)}
	case r.Status == accept.Gated:
		// The seam reports both gates as a violation of the contract (OpenWOP
		// envelope contract §24, C7).
		drafts = []draft{failed(f, fault.EnvelopeContractViolation, r, map[string]any{
			"refusedType": r.RefusedType, "acceptedTypes": r.AllowedKinds,
		})}
	case r.Status == accept.Breached:
		drafts = []draft{breached(r, f), failed(f, fault.CapBreached, r, map[string]any{"capKind": r.CapKind})}
	default:
		drafts = []draft{failed(f, r.Code, r, nil)}
	}
	return finish(drafts, f)
}

// draft is an event whose payload is not rendered yet.
type draft struct {
	kind    wire.EventType
	payload any
}

func finish(drafts []draft, f accept.Facts) ([]wire.Draft, error) {
	out := make([]wire.Draft, 0, len(drafts))
	for _, d := range drafts {
		payload, err := json.Marshal(d.payload)
		if err != nil {
			return nil, err
		}
		out = append(out, wire.Draft{
			Type: d.kind, Payload: payload, NodeID: f.NodeID, CausationID: f.CorrelationID, Trust: f.Trust,
		})
	}
	return out, nil
}

func failed(f accept.Facts, code fault.Code, r *accept.Refusal, details map[string]any) draft {
	return draft{wire.EventNodeFailed, map[string]any{
		"nodeId": f.NodeID,
		"error":  wire.NodeError{Code: string(code), Message: r.Reason(), Details: details},
	}}
}

func breached(r *accept.Refusal, f accept.Facts) draft {
	return draft{wire.EventCapBreached, map[string]any{
		"kind": r.CapKind, "limit": r.Limit, "observed": r.Observed, "nodeId": f.NodeID,
	}}
}

func discarded(r *accept.Refusal, f accept.Facts) draft {
	return draft{wire.EventLogAppended, map[string]any{
		"level": "warn", "message": "an envelope was discarded: " + r.Reason(), "nodeId": f.NodeID,
		"fields": map[string]any{"kind": r.RefusedType, "allowedKinds": slices.Clone(r.AllowedKinds), "refusalMode": r.Mode},
	}}
}
