package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// feedTurn is a period in which this process feeds. It reads the log in order, and offers the frames
// of each tenant on their own, so that a tenant with many webhooks delays no other.
type feedTurn struct {
	*feeder

	// record and rev are what is stored. One goroutine at a time uses them.
	record feedRecord
	rev    uint64
	// moved holds a token when the record may have to be stored.
	moved chan struct{}

	mu sync.Mutex // guards all below
	// starts is the log position after which each subscription is fed, by its revision.
	starts map[uint64]uint64
	// reading is the end of the batch that is being read, read that of the last one that was read, and
	// offered the position of the last frame that a lane was offered.
	reading, read, offered uint64
	waiting                waiting
}

// acquire claims the feed, or returns how long the present owner may keep it.
func (f *feeder) acquire(ctx context.Context) (*feedTurn, time.Duration, error) {
	t := &feedTurn{feeder: f, moved: make(chan struct{}, 1), waiting: newWaiting()}
	e, err := f.KV.Get(ctx, feedKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrDamaged) {
		return nil, 0, err
	}
	t.rev = e.Revision
	if err == nil && json.Unmarshal(e.Value, &t.record) != nil {
		err = kv.ErrDamaged
	}
	if errors.Is(err, kv.ErrDamaged) { // every subscription is fed again from its start
		t.record = feedRecord{}
	}
	if left := t.record.Until.Sub(f.Clock()); t.record.Owner != "" && t.record.Owner != f.Owner && left > 0 {
		return nil, min(left, f.Lease), nil
	}
	t.resume()
	return t, 0, t.commit(ctx)
}

// resume finds the start position. A subscription that the last feeder did not know starts
// where it was created, even if others are further.
func (t *feedTurn) resume() {
	t.starts = map[uint64]uint64{}
	t.read = math.MaxUint64
	for _, list := range t.View.All() {
		for _, e := range list {
			from := e.After
			if e.Revision <= t.record.Known {
				from = max(from, t.record.Pos)
			}
			t.starts[e.Revision] = from
			t.read = min(t.read, from)
		}
	}
	if len(t.starts) == 0 { // all were deleted
		t.read = t.record.Pos
	}
	t.reading = t.read
}

// commit stores the position and renews the lease.
func (t *feedTurn) commit(ctx context.Context) error {
	next := t.progress()
	next.Owner, next.Until = t.Owner, t.Clock().Add(t.Lease)
	return t.write(ctx, next)
}

// progress returns the position up to which all frames are offered, to all subscriptions up to
// Known.
func (t *feedTurn) progress() feedRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := feedRecord{Pos: t.waiting.before(t.read), Known: t.record.Known}
	for made := range t.starts {
		next.Known = max(next.Known, made)
	}
	return next
}

func (t *feedTurn) write(ctx context.Context, next feedRecord) error {
	b, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write feed record: %w", err)
	}
	rev, err := t.KV.Update(ctx, feedKey, b, t.rev)
	if errors.Is(err, kv.ErrConflict) {
		return errLeaseLost
	}
	if err != nil {
		return err
	}
	t.record, t.rev = next, rev
	return nil
}

// release lets another replica take over immediately.
func (t *feedTurn) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, feedRetry)
	defer cancel()
	_ = t.write(ctx, t.progress()) // otherwise the lease expires
}

// follow reads the log until the turn ends.
func (t *feedTurn) follow(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return t.keep(ctx) })
	all.Go(func() error {
		offering := &offering{turn: t, group: all, places: semaphore.NewWeighted(offersAtOnce)}
		err := t.Log.Follow(ctx, t.read, func(batch []*frame.Frame) error { return offering.pass(ctx, batch) }, func(_ subject.Run, pos uint64, err error) {
			t.Logger.Error("webhooks: a frame of the run log is damaged", "position", pos, "error", err)
		})
		return cmp.Or(err, context.Canceled) // the turn ends with it
	})
	return all.Wait()
}

// keep stores the progress, renews the lease and adds new subscriptions.
func (t *feedTurn) keep(ctx context.Context) error {
	tick := time.NewTicker(t.Lease / 3)
	defer tick.Stop()
	for {
		changed := t.View.Changed()
		if _, err := t.addSubscriptions(0); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			continue
		case <-t.moved:
			if !t.owes() {
				continue
			}
		case <-tick.C:
		}
		if err := t.commit(ctx); err != nil {
			return err
		}
	}
}

// owes reports whether the stored record keeps finished lanes from being deleted.
func (t *feedTurn) owes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offered > t.record.Pos && t.waiting.before(t.read) > t.record.Pos
}

// errIdle ends a turn after the last subscription was deleted.
var errIdle = fmt.Errorf("%w: no subscriptions", errRewind)

// addSubscriptions adds new subscriptions, and returns all of them for the frames that are read next,
// up to a position. It returns errRewind for one that was created before a frame that has been read
// without it.
func (t *feedTurn) addSubscriptions(upTo uint64) (map[string][]*subscription.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.View.All() // what comes later is compared with reading
	if len(all) == 0 {
		return nil, errIdle
	}
	for _, list := range all {
		for _, e := range list {
			if _, known := t.starts[e.Revision]; known {
				continue
			}
			if e.After < t.reading {
				return nil, errRewind
			}
			t.starts[e.Revision] = e.After
		}
	}
	t.reading = max(t.reading, upTo)
	return all, nil
}

// startOf returns the position after which a subscription is fed.
func (t *feedTurn) startOf(e *subscription.Entry) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, known := t.starts[e.Revision]; known {
		return at
	}
	return e.After
}
