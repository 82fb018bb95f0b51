// Package interrupt implements a run's questions to people and external systems: what a node asks,
// who may answer, which answers are valid, and what the run records (OpenWOP host contract §6).
//
//	From              a node's config as a Request
//	Open              opens the Request of a node: a Pending and its events
//	Decide            evaluates an answer: reject, keep open, or resolve
//	Pending.AddNote   folds an answer that does not resolve the interrupt
//	Pending.TimeOut   resolves an interrupt without an answer in time
//
// All functions are pure: time comes from the caller, and ids derive from run and node, so that
// folding a log again yields the same state.
package interrupt
