package accept

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// contract accepts the universal kinds and the kinds that the node accepts. A
// contract cannot refuse a universal kind, and may list it (OpenWOP envelope
// contract §3.1, §7).
func contract(_ context.Context, e *execution) (*Refusal, error) {
	c := e.req.Contract
	if c == nil || wire.IsUniversal(e.env.Type) || slices.Contains(c.Accepts, e.env.Type) {
		return nil, nil
	}
	return &Refusal{
		Status: Gated, Code: fault.EnvelopeContractViolation, Message: "the node's contract does not accept this kind",
		RefusedType: e.env.Type, AllowedKinds: withUniversals(c.Accepts), Mode: e.refusalMode(),
	}, nil
}

// refusalMode returns the node's refusal mode; the default is fail-node.
func (e *execution) refusalMode() RefusalMode {
	if e.req.Mode != "" {
		return e.req.Mode
	}
	return FailNode
}
