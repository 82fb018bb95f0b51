package outbox

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
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// turn is the time in which this process feeds.
type turn struct {
	*Feeder

	mu  sync.Mutex // guards all below
	pos position
	rev uint64
	// fed is how far the log was fed to each subscription, by the revision it was made
	// at.
	fed map[uint64]uint64
}

// begin takes the feed's record, or says how long its owner may still keep it.
func (f *Feeder) begin(ctx context.Context) (*turn, time.Duration, error) {
	t := &turn{Feeder: f}
	e, err := f.KV.Get(ctx, feedKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, 0, err
	}
	if err == nil {
		if err := json.Unmarshal(e.Value, &t.pos); err != nil {
			return nil, 0, fmt.Errorf("read the feed's record: %w", err)
		}
		t.rev = e.Revision
	}
	if left := t.pos.Until.Sub(f.Clock()); t.pos.Owner != "" && t.pos.Owner != f.Owner && left > 0 {
		return nil, min(left, f.Lease), nil
	}
	t.resume()
	return t, 0, t.commit(ctx)
}

// resume finds out where each subscription stands. One that the last feeder did not
// know of begins where it was made, even if others are further.
func (t *turn) resume() {
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
	if len(t.fed) == 0 { // they were deleted meanwhile
		start = t.pos.Pos
	}
	t.pos.Pos = start
}

// commit writes how far the feed is, and that its owner lives. The caller holds mu, or
// is alone.
func (t *turn) commit(ctx context.Context) error {
	next := t.pos
	next.Owner, next.Until = t.Owner, t.Clock().Add(t.Lease)
	for made := range t.fed {
		next.Known = max(next.Known, made)
	}
	return t.write(ctx, next)
}

func (t *turn) write(ctx context.Context, next position) error {
	b, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write the feed's record: %w", err)
	}
	rev, err := t.KV.Update(ctx, feedKey, b, t.rev)
	if errors.Is(err, kv.ErrConflict) {
		return errLost
	}
	if err != nil {
		return err
	}
	t.pos, t.rev = next, rev
	return nil
}

// release lets another replica take over at once.
func (t *turn) release(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, retry)
	defer cancel()
	next := t.pos
	next.Owner, next.Until = "", time.Time{}
	_ = t.write(ctx, next) // else the lease passes
}

// follow reads the log until the turn ends.
func (t *turn) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := t.pos.Pos // from here on keep writes it, too
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := t.keep(ctx); err != nil {
			cancel(err)
		}
	})
	err := t.Log.Follow(ctx, from, func(batch []*frame.Frame) error { return t.feed(ctx, batch) }, func(pos uint64, err error) {
		t.Logger.Error("webhooks: a frame of the run log is damaged", "position", pos, "error", err)
	})
	cancel(err)
	wg.Wait()
	return context.Cause(ctx)
}

// keep renews the lease, and looks for subscriptions that are new.
func (t *turn) keep(ctx context.Context) error {
	tick := time.NewTicker(t.Lease / 3)
	defer tick.Stop()
	for {
		changed := t.View.Changed()
		if err := t.meet(t.View.All()); err != nil {
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

// errIdle ends a turn in which nobody wants anything any more.
var errIdle = fmt.Errorf("%w: there is none any more", errRewind)

// meet takes in subscriptions that are new. One that was made before a frame which
// was read without it makes the feed go back.
func (t *turn) meet(all map[string][]*subscription.Entry) error {
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

// feed offers a batch.
func (t *turn) feed(ctx context.Context, batch []*frame.Frame) error {
	all := t.View.All()
	if err := t.meet(all); err != nil {
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
		chosen, err := t.selected(ctx, fr, list)
		if err != nil {
			return err
		}
		for _, e := range chosen {
			if fr.Pos > t.fed[e.Revision] {
				offers.add(ID{fr.Run.Tenant, e.ID, fr.Run.RunID}, fr)
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
	if len(offers.order) == 0 { // what holds nothing may be read again
		return nil
	}
	return t.commit(ctx)
}

// offers are what a batch holds, one for each lane.
type offers struct {
	order []*offer
	byID  map[ID]*offer
}

type offer struct {
	id          ID
	workflow    string
	after, upTo uint64
}

func (o *offers) add(id ID, fr *frame.Frame) {
	if known := o.byID[id]; known != nil {
		known.upTo = fr.Pos
		return
	}
	if o.byID == nil {
		o.byID = map[ID]*offer{}
	}
	n := &offer{id: id, workflow: fr.Run.WorkflowID, after: fr.Pos - 1, upTo: fr.Pos}
	o.byID[id], o.order = n, append(o.order, n)
}
