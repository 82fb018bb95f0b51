package project

import (
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// ownerAfter returns the owner of a run after its next frame.
func ownerAfter(before store.Owner, f *frame.Frame) store.Owner {
	o := frame.Ownership{Owner: before.Process, Epoch: before.Epoch}.After(f)
	switch {
	case o.Owner == "":
		return store.Owner{}
	case o.Owner == before.Process && o.Epoch == before.Epoch:
		return before
	default:
		return store.Owner{Process: o.Owner, Epoch: o.Epoch, Since: wire.FormatTime(f.Stored)}
	}
}

// Owner returns the dispatcher process that owns the run; the zero Owner once it has ended.
func (r *Run) Owner() store.Owner {
	if r.State.Status.Terminal() || r.Damage != "" {
		return store.Owner{}
	}
	return r.owner
}
