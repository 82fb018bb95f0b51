// Package writebehind lets readers see a batch at once, and lets the store
// below commit many batches together.
//
// What the store below has not committed is kept in memory, and so is, up to a
// bound, what it committed last: a run that is on its way, or has just ended, is
// read without the store below. Nothing is lost by a crash: the position in the
// log is committed with what it stands for, so the log is applied again from
// there.
//
// Reads across runs wait until what was applied before them is committed.
package writebehind
