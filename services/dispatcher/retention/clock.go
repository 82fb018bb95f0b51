package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
)

// catchUp is how much faster than real time the clock of retention follows the clock of the host.
const catchUp = 24

const clockKey = "clock"

// Clock is the time that retention counts with. It is stored, never later than the host's clock, and
// advances at most catchUp times as fast as real time. So a clock that jumps a year ahead makes a
// day's runs due within an hour, not a year's at once, and an operator has time to see the warning.
//
// It is used by one goroutine.
type Clock struct {
	store kv.Store
	host  func() time.Time
	// log returns the size of the log in bytes, and the time of its newest record, where the clock
	// starts; the zero time for an empty log.
	log func(ctx context.Context) (bytes uint64, newest time.Time, err error)
	// since returns the real time since an earlier call; it is monotonic.
	since func() time.Duration

	at       time.Time
	revision uint64
}

// NewClock returns a clock over a store.
func NewClock(store kv.Store, host func() time.Time, log func(context.Context) (uint64, time.Time, error)) *Clock {
	return &Clock{store: store, host: host, log: log, since: stopwatch()}
}

// Measure replaces the measurement of real time, for tests.
func (c *Clock) Measure(since func() time.Duration) { c.since = since }

// Read returns the time of the clock as it is stored, without moving it; the zero time if there is
// none. Errors: kv.ErrUnavailable.
func Read(ctx context.Context, store kv.Store, host func() time.Time) (time.Time, error) {
	e, err := store.Get(ctx, clockKey)
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrDamaged) {
		return time.Time{}, nil
	}
	var r clockRecord
	if err != nil || json.Unmarshal(e.Value, &r) != nil {
		return time.Time{}, err
	}
	return earlier(host(), r.At), nil
}

// stopwatch returns a function that measures the time between its calls.
func stopwatch() func() time.Duration {
	last := time.Now()
	return func() time.Duration {
		now := time.Now()
		took := now.Sub(last)
		last = now
		return took
	}
}

type clockRecord struct {
	At time.Time `json:"at"`
}

// Forget makes the next Advance read the stored time again, because another process has moved it.
func (c *Clock) Forget() { c.at = time.Time{} }

// Advance moves the clock, and returns its time and how far it is behind the clock of the host.
// Errors: kv.ErrUnavailable, and those of the log.
func (c *Clock) Advance(ctx context.Context) (now time.Time, behind time.Duration, err error) {
	took := c.since()
	if c.at.IsZero() {
		if err := c.load(ctx); err != nil {
			return time.Time{}, 0, err
		}
		took = 0 // whatever happened before, this process did not measure it
	}
	host := c.host()
	if c.at.IsZero() { // the log is empty: there is nothing to erase
		return host, 0, nil
	}
	at := earlier(host, c.at.Add(catchUp*took))
	if at.After(c.at) {
		value, err := json.Marshal(clockRecord{at})
		if err != nil {
			return time.Time{}, 0, fmt.Errorf("render the clock of retention: %w", err)
		}
		revision, err := c.store.Update(ctx, clockKey, value, c.revision)
		if err != nil {
			c.Forget()
			return time.Time{}, 0, fmt.Errorf("store the clock of retention: %w", err)
		}
		c.at, c.revision = at, revision
	}
	now = earlier(host, c.at) // the clock of the host may have been set back
	return now, host.Sub(now), nil
}

// Check reports whether the log and the store can be used, by moving the clock. Errors are those of
// Advance.
func (c *Clock) Check(ctx context.Context) error {
	if _, _, err := c.Advance(ctx); err != nil {
		return err
	}
	_, _, err := c.log(ctx)
	return err
}

// load reads the stored time. The first one is that of the newest record of the log.
func (c *Clock) load(ctx context.Context) error {
	e, err := c.store.Get(ctx, clockKey)
	var r clockRecord
	switch {
	case err == nil && json.Unmarshal(e.Value, &r) == nil && !r.At.IsZero():
		c.at, c.revision = r.At, e.Revision
		return nil
	case err != nil && !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrDamaged):
		return fmt.Errorf("read the clock of retention: %w", err)
	}
	_, newest, err := c.log(ctx)
	if err != nil {
		return err
	}
	c.at, c.revision = earlier(c.host(), newest), e.Revision
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
