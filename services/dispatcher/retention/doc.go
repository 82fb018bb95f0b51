// Package retention erases runs whose retention is over.
//
//	Policies   how long the runs of a workflow are kept after their end
//	Clock      the time that retention counts with, which a wrong clock of the host cannot move far
//	Holds      legal holds, and the claims of erasures that exclude them
//	Sweeper    finds runs whose retention is over, and erases them at a bounded rate
//
// One dispatcher sweeps at a time: the first by id of those with a lease. A second one that sweeps
// while leases change does no harm, because each erasure is decided by the run's log.
package retention
