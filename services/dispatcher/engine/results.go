package engine

import (
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// applyResults applies the result of an effect, and the results of others that have ended.
func (s *session) applyResults(d effectResult) {
	for n, size := 1, d.size(); ; n++ {
		s.applyResult(d)
		if n >= s.exec.cfg.MaxBatch || size >= maxBatchBytes {
			return
		}
		next, ok := tryReceive(s.effects.port.results)
		if !ok {
			return
		}
		d, size = next, size+next.size()
	}
}

// applyResult applies the result of an effect to the machine. The next advance appends it. A result
// that comes too late is dropped. An effect without a result ends the session, once its other
// effects have ended, unless its next call may only not begin here: the run then continues elsewhere.
func (s *session) applyResult(d effectResult) {
	s.effects.received(d.effect)
	if !s.machine.IsCurrent(d.effect) {
		return
	}
	res, err := s.exec.resultOf(s.claim.run.RunID, d)
	if err != nil {
		if res.Unsent {
			s.releaseEffects(d.effect)
		}
		if !res.Unsent || !errors.Is(err, errQuiet) {
			s.interrupted = errors.Join(s.interrupted,
				fmt.Errorf("node %s of run %s: %w", d.effect.NodeID, s.claim.run.RunID, err))
		}
		return
	}
	if !s.exec.onlyCallsModel(d.effect) {
		s.unflushed.sideEffectPending = true
	}
	now := s.exec.deps.Clock()
	s.unflushed.apply(func() { endEffect(s.machine, now, d.effect, res) })
}

// releaseEffects records that the next calls of effects were not sent.
func (s *session) releaseEffects(effects ...machine.Effect) {
	if len(effects) == 0 {
		return
	}
	s.unflushed.apply(func() {
		for _, e := range effects {
			if s.machine.IsCurrent(e) {
				s.machine.ReleaseEffects(e.NodeID)
			}
		}
	})
}

// resultOf returns the result of an effect that ends its node. An interrupted effect has none, so
// the session ends with err. An interruption that a redelivery would repeat fails the node.
func (e *Executor) resultOf(runID string, d effectResult) (res model.Result, err error) {
	if res = d.result; res.Interrupted == nil {
		return res, nil
	}
	log, attrs := e.deps.Logger, []any{"run_id", runID, "node_id", d.effect.NodeID, "error", res.Interrupted}
	switch {
	case runlog.IsPermanent(res.Interrupted):
		log.Warn("node failed: its events exceed a limit of the run's log", attrs...)
		res.Interrupted, res.Err = nil, machine.EventsTooLarge()
	case errors.Is(res.Interrupted, errRefused):
		log.Error("node failed: the acceptor rejected the request", attrs...)
		res.Interrupted, res.Err = nil, &wire.NodeError{
			Code:    string(fault.InternalError),
			Message: "the host's acceptor refuses what the node hands in; its operator finds why in the host's log",
		}
	}
	return res, res.Interrupted
}

// endEffect applies the result of an effect to its node.
func endEffect(m *machine.Machine, now time.Time, e machine.Effect, res model.Result) {
	m.Emit(now, res.Drafts...)
	switch {
	case res.Waits:
		m.Suspend(now, e.NodeID)
	case res.Err != nil:
		m.FailNode(now, e.NodeID, res.Err, wire.Trusted.Meet(e.Trust).Meet(res.Trust))
	case e.Spawn != nil:
		m.RecordDispatch(now, e.NodeID, *e.Spawn)
	default:
		m.Complete(now, e.NodeID, res.Output, res.Trust)
	}
}
