// Package snapshot stores folded states of long runs, so that a dispatcher need not read and fold
// the whole log of a run.
//
// A snapshot is an optimisation and never a source of truth. It is used only if a build with the
// same fold wrote it, it is intact, and the log still has its frame. Otherwise the run is folded
// from its log. Masked runs have no snapshots.
package snapshot
