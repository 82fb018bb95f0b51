// Package seam is the envelope/accept test seam: the production pipeline, with a
// context that the caller sets (OpenWOP envelope contract §23.1).
//
//	request.go    the body of a request; split.go extracts the envelope from it
//	exercise.go   one request: context, pipeline, outcome
//	catalogue.go  the request's kinds and versions
//	ledger.go     dedup by the request's priors, a run's store, the seam's own store
//	project.go    the events and the span of the outcome
//	store.go      interfaces of the state that outlives a request
//	shared.go     that state in records that all processes share; chain.go its lists
//
// Conformance suites call it. It is served only with test seams on.
package seam
