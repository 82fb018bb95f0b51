package engine

import (
	"context"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// A question to a model may be asked as soon as the log has taken that it is: nobody else can ask it then
// (OpenWOP host contract §5.5), and what comes of it is recorded behind, so that it is never
// on the disk alone. All else waits until the log is on the disk: what is done outside,
// what the host says, and the end of a delivery. See docs/adr/0035.

// appendAsync is how the session appends where it does not have to wait for the disk at once: with keep to
// be called for before anything but a model is asked. The end of a run waits, and that of an effect which must
// not be carried out again; so does a masked run, whose clear values go once the log says so.
func (s *session) appendAsync(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if f.Kind == subject.End || s.sideEffectPending || s.machine.State().Record.Masking != "" {
		return s.exec.deps.Log.Append(ctx, f, after)
	}
	return runlog.Stage(ctx, s.exec.deps.Log, f, after)
}

// syncLog returns when the run's log is on the disk, as far as the session knows it: also what
// others have appended, and what was found there.
func (s *session) syncLog(ctx context.Context) error {
	return runlog.Keep(ctx, s.exec.deps.Log, s.head.Pos)
}

// onlyCallModels reports that effects do nothing but ask models.
func (s *session) onlyCallModels(effects []machine.Effect) bool {
	for _, e := range effects {
		if !s.onlyCallsModel(e) {
			return false
		}
	}
	return true
}

// onlyCallsModel reports that an effect asks a model, and nothing else.
func (s *session) onlyCallsModel(e machine.Effect) bool {
	return e.Spawn == nil && s.exec.deps.Types[e.TypeID].EmitsEnvelopes
}
