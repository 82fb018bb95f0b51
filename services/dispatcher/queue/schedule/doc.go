// Package schedule decides which waiting run gets a free slot of a dispatcher. It does no I/O and
// reads no clock: instants are passed in.
//
// Three rules, in this order:
//
//   - Shares: the tenant that holds the fewest slots for its weight is served first. A few slots
//     beyond the regular ones are reserved for tenants that hold less than their share, so that a
//     tenant with one new run does not wait for the long runs of another tenant.
//   - Priority: of one tenant's runs the highest priority is served first. A waiting run gains one
//     level for each AgeStep, so that low priorities do not starve.
//   - Order: runs of the same lane (same priority, same limits) are served in the order of the log.
package schedule
