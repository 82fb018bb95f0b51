// Package interrupt is a run's question to somebody outside: what a node asks, who may
// answer, what counts as an answer, and what the run records of it (OpenWOP host
// contract §6).
//
//	From, FromEnvelope   a node's config, or a model's envelope, as a Request
//	Open                 a Request that a node asks: a Pending and its events
//	Decide               judges an answer: refuse, keep open, or resolve
//	Pending.Keep         folds what a run keeps of answers that resolve nothing
//	Pending.TimeOut      what becomes of one that nobody answered
//
// Everything is a function of its arguments: time comes from the caller, and ids
// derive from run and node, so that whoever folds a log again finds the same.
package interrupt
