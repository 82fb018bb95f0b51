package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// feedTurn is a period in which this process feeds. It reads the log in order, and offers the frames
// of each tenant on their own, so that a tenant with many webhooks delays no other.
type feedTurn struct {
	*feeder

	// group has the goroutines of the turn. offers and rereads limit the writes of lanes and the
	// tenants that read the log again, at a time.
	group           *errgroup.Group
	offers, rereads *semaphore.Weighted
	// record and rev are what is stored. One goroutine at a time uses them.
	record feedRecord
	rev    uint64
	// moved holds a token when the record may have to be stored.
	moved chan struct{}

	mu sync.Mutex // guards all below
	// starts is the log position after which each subscription is fed, by its revision.
	starts map[uint64]uint64
	// offered is the position of the last frame that a lane of a tenant was offered, unless the
	// record has it.
	offered map[string]uint64
	backlog backlog
}

// acquire claims the feed, or returns how long the present owner may keep it.
func (f *feeder) acquire(ctx context.Context) (*feedTurn, time.Duration, error) {
	t := &feedTurn{
		feeder: f, moved: make(chan struct{}, 1), starts: map[uint64]uint64{}, offered: map[string]uint64{}, backlog: newBacklog(f.Limits),
		offers: semaphore.NewWeighted(offersAtOnce), rereads: semaphore.NewWeighted(rereadsAtOnce),
	}
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

// resume finds the start position of each tenant. A subscription that the last feeder did not know
// starts where it was created, even if others are further.
func (t *feedTurn) resume() {
	first, from := uint64(math.MaxUint64), map[string]uint64{}
	for tenant, list := range t.View.All() {
		at := uint64(math.MaxUint64)
		for _, e := range list {
			start := e.After
			if e.Revision <= t.record.Known {
				start = max(start, t.record.position(tenant))
			}
			t.starts[e.Revision] = start
			at = min(at, start)
		}
		from[tenant] = at
		first = min(first, at)
	}
	t.backlog.read = t.record.others()
	if len(from) > 0 {
		t.backlog.read = max(t.backlog.read, first)
	}
	for tenant, at := range from {
		if at < t.backlog.read {
			t.backlog.rewind(tenant, at)
		}
	}
}

// commit stores the position and renews the lease.
func (t *feedTurn) commit(ctx context.Context) error {
	next := t.progress()
	next.Owner, next.Until = t.Owner, t.Clock().Add(t.Lease)
	return t.write(ctx, next)
}

// progress returns the positions up to which all frames are offered, to all subscriptions up to
// Known.
func (t *feedTurn) progress() feedRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := feedRecord{Known: t.record.Known}
	t.backlog.progress(&next)
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
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.offered, func(tenant string, pos uint64) bool { return pos <= next.position(tenant) })
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
	t.group, ctx = errgroup.WithContext(ctx)
	behind, read := t.backlog.names(), t.backlog.read
	t.group.Go(func() error { return t.keep(ctx) })
	t.start(ctx, behind)
	t.group.Go(func() error {
		err := t.Log.Follow(ctx, read, func(batch []*frame.Frame) error { return t.pass(ctx, batch) }, t.logDamaged)
		return cmp.Or(err, context.Canceled) // the turn ends with it
	})
	return t.group.Wait()
}

// keep stores the progress, renews the lease and adds new subscriptions.
func (t *feedTurn) keep(ctx context.Context) error {
	tick := time.NewTicker(t.Lease / 3)
	defer tick.Stop()
	for {
		changed := t.View.Changed()
		t.mu.Lock()
		_, busy, err := t.addSubscriptions()
		t.mu.Unlock()
		if err != nil {
			return err
		}
		t.start(ctx, busy)
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
	for tenant, pos := range t.offered {
		if stored := t.record.position(tenant); pos > stored && t.backlog.position(tenant) > stored {
			return true
		}
	}
	return false
}

// addSubscriptions adds new subscriptions, and returns all of them for the frames that are read next.
// A tenant with one that was created before a frame that is read already reads its frames again; busy
// are those that were idle. Call it with the lock.
func (t *feedTurn) addSubscriptions() (all map[string][]*subscription.Entry, busy []string, err error) {
	all = t.View.All() // what comes later is compared with what is read by then
	if len(all) == 0 {
		return nil, nil, errIdle
	}
	for tenant, list := range all {
		var old []*subscription.Entry
		at := t.backlog.read
		for _, e := range list {
			if _, known := t.starts[e.Revision]; known {
				old = append(old, e)
				continue
			}
			t.starts[e.Revision] = e.After
			at = min(at, e.After)
		}
		if at == t.backlog.read {
			continue
		}
		fed := t.backlog.position(tenant)
		for _, e := range old { // they get no frame twice
			t.starts[e.Revision] = max(t.starts[e.Revision], fed)
		}
		if t.backlog.rewind(tenant, at) {
			busy = append(busy, tenant)
		}
	}
	return all, busy, nil
}
