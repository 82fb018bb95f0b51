package provider

import "time"

// Timeouts are the time limits of one call. Zero means that another source sets the limit.
type Timeouts struct {
	// Connect limits the time to an open connection: DNS, TCP and TLS.
	Connect time.Duration
	// FirstByte limits the time from the open connection to the first byte of the answer.
	FirstByte time.Duration
	// Silence limits the time between two reads of the answer.
	Silence time.Duration
	// Call limits the whole call, without the time in the provider's queue.
	Call time.Duration
}

// DefaultTimeouts suit reasoning models, which can be silent for minutes.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Connect:   10 * time.Second,
		FirstByte: 10 * time.Minute,
		Silence:   10 * time.Minute,
		Call:      30 * time.Minute,
	}
}

// Or fills the limits that t leaves at zero from other.
func (t Timeouts) Or(other Timeouts) Timeouts {
	fill := func(d *time.Duration, from time.Duration) {
		if *d <= 0 {
			*d = from
		}
	}
	fill(&t.Connect, other.Connect)
	fill(&t.FirstByte, other.FirstByte)
	fill(&t.Silence, other.Silence)
	fill(&t.Call, other.Call)
	return t
}
