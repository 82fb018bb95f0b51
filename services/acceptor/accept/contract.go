package accept

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/fault"
)

// contract passes the universal kinds and those the node accepts. A contract
// cannot refuse a universal kind, and one that lists it does no harm (OpenWOP
// envelope contract §3.1, §7).
func contract(_ context.Context, p *passage) (*Refusal, error) {
	c := p.req.Contract
	if c == nil || IsUniversal(p.env.Type) || slices.Contains(c.Accepts, p.env.Type) {
		return nil, nil
	}
	return &Refusal{
		Status: Gated, Code: fault.EnvelopeContractViolation, Message: "the node's contract does not accept this kind",
		RefusedType: p.env.Type, AllowedKinds: withUniversals(c.Accepts), Mode: p.refusalMode(),
	}, nil
}

// refusalMode is the node's, fail-node by default.
func (p *passage) refusalMode() RefusalMode {
	if p.req.Mode != "" {
		return p.req.Mode
	}
	return FailNode
}
