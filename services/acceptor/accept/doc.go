// Package accept validates one AI envelope and records its events, exactly once.
//
//	Pipeline.Run     the steps in normative order (pipeline.go)
//	<step>.go        one file per step, named as in the specification
//	lookup.go        the recorded outcome of an envelope whose run has ended
//	ports.go         the interfaces that the pipeline needs
//	ledger.go        dedup and record over the run log
//	dedup_cache.go   the correlationIds of recent runs; it only saves reads
//	recorded.go      how an outcome is derived from recorded events
//
// The order is normative and nothing in it may be reordered or skipped
// (OpenWOP envelope contract §6): shape, kind, version, payload, contract,
// limits, redaction, trust, approval, dedup, route, record.
//
// A refused envelope records nothing and does not use up its correlationId, so a
// corrected envelope may follow under the same id. The run's executor writes the
// events of a refusal (node.failed, cap.breached, the warning about a discarded
// envelope) from the outcome. The run log alone decides whether an envelope was
// accepted before: by causationId, and by the compare-and-set append.
package accept
