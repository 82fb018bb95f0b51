package accept

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
)

// trust sets the envelope's trust: its own tag, else the run's boundary, else
// trusted (OpenWOP envelope contract §12). The executor derived the tag from the
// taint of the node's inputs, so even "trusted" in an untrusted run is honoured.
// The exception is Request.Untrusted: an external run that was opened as untrusted,
// where this host did not track the taint.
func trust(_ context.Context, e *execution) (*Refusal, error) {
	e.attrs.Trust = e.resolveTrust()
	return nil, nil
}

func (e *execution) resolveTrust() wire.Trust {
	switch {
	case e.req.Untrusted:
		return wire.Untrusted
	case e.meta.ContentTrust != "":
		return e.meta.ContentTrust
	case e.req.Boundary != "":
		return e.req.Boundary
	default:
		return wire.Trusted
	}
}
