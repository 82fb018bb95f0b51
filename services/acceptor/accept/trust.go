package accept

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
)

// trust settles the envelope's trust: its own tag, else the run's boundary,
// else trusted (OpenWOP envelope contract §12). The tag was set by the
// executor from the taint of the node's inputs, so it is honoured as it is,
// also "trusted" within an untrusted run; but not in a run that was opened as
// untrusted, where nobody here has followed the taint.
func trust(_ context.Context, p *passage) (*Refusal, error) {
	p.facts.Trust = p.resolveTrust()
	return nil, nil
}

func (p *passage) resolveTrust() wire.Trust {
	switch {
	case p.req.Untrusted:
		return wire.Untrusted
	case p.meta.ContentTrust != "":
		return p.meta.ContentTrust
	case p.req.Boundary != "":
		return p.req.Boundary
	default:
		return wire.Trusted
	}
}
