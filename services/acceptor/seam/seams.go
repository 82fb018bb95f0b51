package seam

import "waybill.dev/waybill/internal/kv"

// Seams are the acceptor's test seams.
type Seams struct {
	Exerciser
	// State is the test state of all processes of the host.
	State *Shared
}

// New returns test seams that keep their state in records. x has the other collaborators of the
// exerciser.
func New(records kv.Store, x Exerciser) *Seams {
	state := NewShared(records, x.Clock)
	x.Store, x.Log = state, state
	return &Seams{Exerciser: x, State: state}
}
