package accept

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// kind accepts the universal kinds and the kinds that the host advertises. It runs
// before the contract step: a node can only accept kinds that the host has.
func kind(_ context.Context, e *execution) (*Refusal, error) {
	k, ok := e.kinds.Find(e.env.Type)
	if !ok {
		return e.refuseUnknownKind(e.env.Type, "this host does not advertise the kind"), nil
	}
	e.kind = k
	e.attrs.AdvertisedVersion = k.Version
	return nil, nil
}

// refuseUnknownKind refuses a kind outside the catalogue. The seam reports it as
// gated; an executor lets the model retry (OpenWOP envelope contract §24, C7).
func (e *execution) refuseUnknownKind(name, message string) *Refusal {
	return &Refusal{
		Status: Gated, Code: fault.UnknownEnvelopeKind, Message: message,
		RefusedType: name, AllowedKinds: withUniversals(e.kinds.Names()), Mode: e.refusalMode(),
	}
}

// withUniversals returns the four universal kinds, then the others.
func withUniversals(kinds []string) []string {
	out := wire.Universals()
	for _, k := range kinds {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
