package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/internal/kv"
)

// recentRuns is the number of runs in a rate record. A run that is delivered again counts once.
const recentRuns = 32

// rateRecord has the starts of one limit within its period, oldest first.
type rateRecord struct {
	StartsMs []int64  `json:"startsMs"`
	Runs     []string `json:"runs"`
}

// chargeRate counts a start. A wait above 0 is the time that the run must wait; then it was not
// counted.
func chargeRate(ctx context.Context, store kv.Store, l rateLimit, runID string, clock func() time.Time) (wait time.Duration, err error) {
	key := ratePrefix + l.id
	for {
		var r rateRecord
		e, err := store.Get(ctx, key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrDamaged) {
			return 0, err
		}
		if err == nil && json.Unmarshal(e.Value, &r) != nil {
			r = rateRecord{}
		}
		if slices.Contains(r.Runs, runID) {
			return 0, nil
		}
		now := clock()
		if wait := r.add(l, runID, now); wait > 0 {
			return wait, nil
		}
		value, err := json.Marshal(r)
		if err != nil {
			return 0, fmt.Errorf("render rate record: %w", err)
		}
		if _, err = store.Update(ctx, key, value, e.Revision); !errors.Is(err, kv.ErrConflict) {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// refundRate removes a start that chargeRate counted.
func refundRate(ctx context.Context, store kv.Store, l rateLimit, runID string) error {
	key := ratePrefix + l.id
	for ctx.Err() == nil {
		e, err := store.Get(ctx, key)
		if err != nil {
			return err
		}
		var r rateRecord
		if err := json.Unmarshal(e.Value, &r); err != nil {
			return err
		}
		i := slices.Index(r.Runs, runID)
		if i < 0 || len(r.StartsMs) == 0 {
			return nil
		}
		r.Runs = slices.Delete(r.Runs, i, i+1)
		r.StartsMs = r.StartsMs[:len(r.StartsMs)-1]
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err = store.Update(ctx, key, value, e.Revision); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return ctx.Err()
}

// add counts a start, or returns the time that it must wait.
func (r *rateRecord) add(l rateLimit, runID string, now time.Time) time.Duration {
	since := now.Add(-l.period).UnixMilli()
	r.StartsMs = slices.DeleteFunc(r.StartsMs, func(ms int64) bool { return ms <= since })
	if wait := r.wait(l, now); wait > 0 {
		return wait
	}
	r.StartsMs = append(r.StartsMs, now.UnixMilli())
	slices.Sort(r.StartsMs) // clocks of processes differ slightly
	if r.Runs = append(r.Runs, runID); len(r.Runs) > recentRuns {
		r.Runs = r.Runs[len(r.Runs)-recentRuns:]
	}
	return 0
}

// wait is the time until the next start is allowed. StartsMs may contain starts before the period.
func (r *rateRecord) wait(l rateLimit, now time.Time) time.Duration {
	n := len(r.StartsMs)
	if n < l.max {
		return 0
	}
	next := time.UnixMilli(r.StartsMs[n-l.max]).Add(l.period)
	if since := now.Add(-l.period).UnixMilli(); r.StartsMs[n-l.max] <= since {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}
