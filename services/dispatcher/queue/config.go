package queue

import (
	"time"

	"waybill.dev/waybill/services/dispatcher/schedule"
)

// Config says how runs wait. The zero durations are replaced by defaults.
type Config struct {
	// Size is the number of regular slots; Slots is how many runs are handed out at most.
	Size int
	// Tick is how often the scheduler checks what has no event: the end of a block or a period, and the
	// leases of the processes that hold something.
	Tick time.Duration
	// ParkAfter is how long no slot may come free until runs in the queue become tickets. A ticket
	// costs some writes, which a run that gets a slot sooner need not pay for.
	ParkAfter time.Duration
	// MaxLag is how long a run may stay in the queue until the queue is emptied into tickets
	// although slots come free.
	MaxLag time.Duration
	// RetryDelay is how long a run waits that was handed back the first time.
	RetryDelay time.Duration
	// Resync is how often the tickets are read from the start.
	Resync time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&c.Tick, 100*time.Millisecond)
	set(&c.ParkAfter, 3*c.Tick)
	set(&c.MaxLag, 500*time.Millisecond)
	set(&c.RetryDelay, time.Second)
	set(&c.Resync, 5*time.Minute)
	return c
}

// Slots is how many runs are executed at most: the regular slots and the reserve.
func (c Config) Slots() int { return c.Size + schedule.Reserve(c.Size) }
