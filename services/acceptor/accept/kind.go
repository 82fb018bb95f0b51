package accept

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/fault"
)

// kind passes the universal kinds and those the host advertises. It fires
// before the node's contract: what the host does not know no node can take.
func kind(_ context.Context, p *passage) (*Refusal, error) {
	k, ok := p.kinds.Find(p.env.Type)
	if !ok {
		return p.unknownKind(p.env.Type, "this host does not advertise the kind"), nil
	}
	p.kind = k
	p.facts.Floor = k.Version
	return nil, nil
}

// unknownKind refuses a kind outside the catalogue. The seam reports it as
// gated; an executor lets the model try again (OpenWOP envelope contract §24, C7).
func (p *passage) unknownKind(name, message string) *Refusal {
	return &Refusal{
		Status: Gated, Code: fault.UnknownEnvelopeKind, Message: message,
		RefusedType: name, AllowedKinds: withUniversals(p.kinds.Names()), Mode: p.refusalMode(),
	}
}

// withUniversals lists the four universal kinds, then the others.
func withUniversals(kinds []string) []string {
	out := Universals()
	for _, k := range kinds {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
