// Package snapshot keeps folded states of long runs, so that a dispatcher which takes up a run
// need not read and fold the whole log.
//
// A snapshot is an optimisation and never a source of truth. It is used only if it was written by
// a build with the same fold, is intact, and is of a frame that the log still has. Otherwise the
// run is folded from its log. Runs whose log is masked have no snapshots.
package snapshot
