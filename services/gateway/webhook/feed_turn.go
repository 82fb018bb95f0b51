package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// feedTurn is a period in which this process feeds.
type feedTurn struct {
	*feeder

	mu  sync.Mutex // guards all below
	pos feedRecord
	rev uint64
	// fed is the log position fed to each subscription, by its revision.
	fed map[uint64]uint64
}

// acquire claims the feed, or returns how long the present owner may keep it.
func (f *feeder) acquire(ctx context.Context) (*feedTurn, time.Duration, error) {
	t := &feedTurn{feeder: f}
	e, err := f.KV.Get(ctx, feedKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrDamaged) {
		return nil, 0, err
	}
	t.rev = e.Revision
	if err == nil && json.Unmarshal(e.Value, &t.pos) != nil {
		err = kv.ErrDamaged
	}
	if errors.Is(err, kv.ErrDamaged) { // every subscription is fed again from its start
		t.pos = feedRecord{}
	}
	if left := t.pos.Until.Sub(f.Clock()); t.pos.Owner != "" && t.pos.Owner != f.Owner && left > 0 {
		return nil, min(left, f.Lease), nil
	}
	t.resume()
	return t, 0, t.commit(ctx)
}

// resume finds the start position. A subscription that the last feeder did not know starts
// where it was created, even if others are further.
func (t *feedTurn) resume() {
	t.fed = map[uint64]uint64{}
	start := uint64(math.MaxUint64)
	for _, list := range t.View.All() {
		for _, e := range list {
			from := e.After
			if e.Revision <= t.pos.Known {
				from = max(from, t.pos.Pos)
			}
			t.fed[e.Revision] = from
			start = min(start, from)
		}
	}
	if len(t.fed) == 0 { // all were deleted
		start = t.pos.Pos
	}
	t.pos.Pos = start
}

// commit stores the position and renews the lease. The caller holds mu or is the only
// goroutine.
func (t *feedTurn) commit(ctx context.Context) error {
	next := t.pos
	next.Owner, next.Until = t.Owner, t.Clock().Add(t.Lease)
	for made := range t.fed {
		next.Known = max(next.Known, made)
	}
	return t.write(ctx, next)
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
	t.pos, t.rev = next, rev
	return nil
}

// release lets another replica take over immediately.
func (t *feedTurn) release(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, feedRetry)
	defer cancel()
	next := t.pos
	next.Owner, next.Until = "", time.Time{}
	_ = t.write(ctx, next) // otherwise the lease expires
}

// follow reads the log until the turn ends.
func (t *feedTurn) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := t.pos.Pos // from here on renewLease writes it, too
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := t.renewLease(ctx); err != nil {
			cancel(err)
		}
	})
	err := t.Log.Follow(ctx, from, func(batch []*frame.Frame) error { return t.offerBatch(ctx, batch) }, func(_ subject.Run, pos uint64, err error) {
		t.Logger.Error("webhooks: a frame of the run log is damaged", "position", pos, "error", err)
	})
	cancel(err)
	wg.Wait()
	return context.Cause(ctx)
}

// renewLease renews the lease and adds new subscriptions.
func (t *feedTurn) renewLease(ctx context.Context) error {
	tick := time.NewTicker(t.Lease / 3)
	defer tick.Stop()
	for {
		changed := t.View.Changed()
		if err := t.addSubscriptions(t.View.All()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
			t.mu.Lock()
			err := t.commit(ctx)
			t.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// errIdle ends a turn after the last subscription was deleted.
var errIdle = fmt.Errorf("%w: no subscriptions", errRewind)

// addSubscriptions adds new subscriptions. It returns errRewind for one that was created
// before a frame that has been read without it.
func (t *feedTurn) addSubscriptions(all map[string][]*subscription.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(all) == 0 {
		return errIdle
	}
	for _, list := range all {
		for _, e := range list {
			if _, known := t.fed[e.Revision]; known {
				continue
			}
			if e.After < t.pos.Pos {
				return errRewind
			}
			t.fed[e.Revision] = e.After
		}
	}
	return nil
}

// offerBatch offers the frames of a batch to lanes.
func (t *feedTurn) offerBatch(ctx context.Context, batch []*frame.Frame) error {
	all := t.View.All()
	if err := t.addSubscriptions(all); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	offers := offers{}
	for _, fr := range batch {
		list := all[fr.Run.Tenant]
		if len(list) == 0 {
			continue
		}
		chosen, err := t.selectSubscriptions(ctx, fr, list)
		if err != nil {
			return err
		}
		for _, e := range chosen {
			if fr.Pos > t.fed[e.Revision] {
				offers.add(laneID{fr.Run.Tenant, e.ID, fr.Run.RunID}, fr)
			}
		}
	}
	for _, o := range offers.order {
		if err := t.Lanes.Offer(ctx, o.id, o.workflow, o.after, o.upTo); err != nil {
			return err
		}
	}
	t.pos.Pos = batch[len(batch)-1].Pos
	for made, at := range t.fed {
		t.fed[made] = max(at, t.pos.Pos)
	}
	if len(offers.order) == 0 { // nothing offered: reading the batch again is harmless
		return nil
	}
	return t.commit(ctx)
}

// offers are the offers of a batch, one for each lane.
type offers struct {
	order []*offer
	byID  map[laneID]*offer
}

type offer struct {
	id          laneID
	workflow    string
	after, upTo uint64
}

func (o *offers) add(id laneID, fr *frame.Frame) {
	if known := o.byID[id]; known != nil {
		known.upTo = fr.Pos
		return
	}
	if o.byID == nil {
		o.byID = map[laneID]*offer{}
	}
	n := &offer{id: id, workflow: fr.Run.WorkflowID, after: fr.Pos - 1, upTo: fr.Pos}
	o.byID[id], o.order = n, append(o.order, n)
}
