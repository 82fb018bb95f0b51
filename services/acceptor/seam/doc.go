// Package seam is the envelope/accept test seam: the pipeline of production,
// with its surroundings given by the caller (OpenWOP envelope contract §23.1).
//
//	request.go    the body of a request; split.go takes the envelope out of it
//	exercise.go   one request: surroundings, pipeline, outcome
//	catalogue.go  kinds and versions as the request wants them
//	ledger.go     dedup by priors, a persisted store, and the seam's own memory
//	project.go    the events and the span of the outcome
//	store.go      what must outlive a request
//	shared.go     keeps it in records that all processes share; chain.go their lists
//
// A conformance suite drives it. It is served only with test seams on.
package seam
