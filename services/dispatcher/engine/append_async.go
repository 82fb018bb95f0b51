package engine

import (
	"context"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// A model call may start once the log has accepted its start event, before fsync: no other
// dispatcher can make the same call then (OpenWOP host contract §5.5). The call's results are
// appended after the start event, so they are never durable without it. All other work waits for
// fsync: other effects, answers to callers, and the end of a delivery. See docs/adr/0035.

// appendAsync appends without waiting for fsync; call syncLog before any effect other than a model
// call. It waits for fsync in three cases: the end of a run, the result of an effect that must not
// run twice, and a masked run, whose clear values are erased once the log has its end.
func (s *session) appendAsync(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if f.Kind == subject.End || s.unflushed.sideEffectPending || s.machine.State().Record.Masking != "" {
		return s.exec.deps.Log.Append(ctx, f, after)
	}
	return runlog.Stage(ctx, s.exec.deps.Log, f, after)
}

// syncLog returns once the log is fsynced up to the session's head, including frames of other
// writers.
func (s *session) syncLog(ctx context.Context) error {
	return runlog.Keep(ctx, s.exec.deps.Log, s.claim.head.Pos)
}

// onlyCallModels reports that all effects are model calls.
func (e *Executor) onlyCallModels(effects []machine.Effect) bool {
	return !slices.ContainsFunc(effects, func(effect machine.Effect) bool { return !e.onlyCallsModel(effect) })
}

// onlyCallsModel reports that an effect is a model call.
func (e *Executor) onlyCallsModel(effect machine.Effect) bool {
	return effect.Spawn == nil && node.CurrentOf(e.deps.Types)[effect.TypeID].EmitsEnvelopes
}
