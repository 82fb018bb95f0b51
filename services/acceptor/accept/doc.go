// Package accept takes one AI envelope in: it decides whether the envelope
// counts, and if so records what follows from it, once.
//
//	Pipeline.Run   the normative order, a list of steps (pipeline.go)
//	<step>.go      one file per step, named as in the specification
//	ports.go       what the pipeline needs from outside
//	ledger.go      dedup and record over the run log
//
// The order is normative and nothing in it may be reordered or skipped
// (OpenWOP envelope contract §6): shape, kind, version, payload, contract,
// limits, redaction, trust, approval, dedup, route, record.
//
// A refused envelope records nothing and binds nothing, so a corrected one may
// come under the same correlationId. The events of a refusal (node.failed,
// cap.breached, the warning of a discarded envelope) are written by the run's
// executor, from the outcome. Whether an envelope was accepted before is decided
// by the run log alone: by causationId, and by the compare-and-set append.
package accept
