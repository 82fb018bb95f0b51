package queue

import (
	"time"

	"waybill.dev/waybill/services/dispatcher/queue/schedule"
)

// Config configures the scheduler. Zero durations use the defaults.
type Config struct {
	// Size is the number of regular slots; Slots is the maximum number of runs in execution.
	Size int
	// Tick is the interval of checks for changes without an event while runs wait: the end of a block
	// or of a period. The leases of holders are checked every tenth tick.
	Tick time.Duration
	// ParkAfter is the time without a free slot after which runs in the queue become tickets. A
	// ticket costs some writes, which a run that gets a slot sooner avoids.
	ParkAfter time.Duration
	// MaxLag is the time of a run in the queue after which the queue is emptied into tickets, even
	// if slots become free.
	MaxLag time.Duration
	// RetryDelay is the wait of a run after it was handed back the first time.
	RetryDelay time.Duration
	// Resync is how often all tickets are read again.
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

// Slots is the maximum number of runs in execution: the regular slots and the reserve.
func (c Config) Slots() int { return c.Size + schedule.Reserve(c.Size) }
