// Package retention manages ended runs: their archives, legal holds,
// expiry and erasure.
//
//	Archiver   makes the archive of a run, and keeps it in the archive of the host
//	Eraser     erases everything that belongs to a run, in all stores of the host
//	Policies   how long the runs of a workflow are kept after their end
//	Clock      the time that retention counts with, which a wrong clock of the host cannot move far
//	Holds      legal holds, and the claims of erasures that exclude them
//	Sweeper    finds runs whose retention is over, and erases them at a bounded rate
//
// An erasure begins with a mark in the run's log. So the compare-and-set of the log decides between
// an erasure and everything else that would change the run, readers of the log delete what they have
// of the run when they read the mark, and a process that dies during an erasure leaves it to another
// one. All steps may be repeated. The frames go last, because steps may need them, and the last
// frames first, so that what is left of a run is always its beginning.
//
// An archive may be stored again: a run has one, however often and by however many processes it is
// stored.
//
// One dispatcher sweeps at a time: the first by id of those with a lease. A second one that sweeps
// while leases change does no harm, because each erasure is decided by the run's log.
package retention
