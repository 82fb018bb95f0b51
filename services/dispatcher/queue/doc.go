// Package queue decides when a queued run is executed, and stores the runs that must wait. Reasons
// are that all slots are in use, the tenant has runs waiting in front, or a limit of the workflow
// or the tenant is used up.
//
// A waiting run is a ticket: a record that all dispatchers share. The run's delivery is
// acknowledged after the ticket is stored. The queue is first in first out, so this keeps it from
// holding a run back because of another one. A dispatcher with a free slot picks a ticket (see
// package schedule), claims it with a compare-and-set, and hands it to the executor as a delivery.
// The ticket is deleted when that delivery is acknowledged. A run is therefore always in the queue,
// in a ticket, or in both, which executes it at most once more.
//
// A ticket, or a permit of a concurrency limit, names its holder by the id of the process's lease
// (see package lease). It is free again once that lease is over. See docs/adr/0037.
package queue
