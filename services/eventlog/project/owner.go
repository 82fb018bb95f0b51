package project

import (
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// released ends the name of a writer that gave its run up with the frame.
const released = "/released"

// ownerAfter is the owner of a run after its next frame. Writers that own the run are
// PROCESS-NUMBER, with @EPOCH since runs have epochs; other frames change no owner.
func ownerAfter(before store.Owner, f *frame.Frame) store.Owner {
	if f.Kind == subject.Wake || f.Holder() == "" {
		return before
	}
	writer, gaveUp := strings.CutSuffix(f.Writer, released)
	if gaveUp {
		return store.Owner{}
	}
	writer, text, _ := strings.Cut(writer, "@")
	epoch, _ := strconv.ParseUint(text, 10, 64) // 0 without an epoch
	process := writer[:max(strings.LastIndexByte(writer, '-'), 0)]
	if process == before.Process && epoch == before.Epoch {
		return before
	}
	return store.Owner{Process: process, Epoch: epoch, Since: wire.FormatTime(f.Stored)}
}

// Owner is the dispatcher process that owns the run; the zero Owner once it has ended.
func (r *Run) Owner() store.Owner {
	if r.State.Status.Terminal() || r.Damage != "" {
		return store.Owner{}
	}
	return r.owner
}
