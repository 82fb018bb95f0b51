package webhook

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Limits of offers.
const (
	// offersAtOnce is how many offers are written at a time, offersEach how many of them are of one
	// tenant.
	offersAtOnce = 64
	offersEach   = 8
	// offeredTogether is how many frames of a tenant are offered together. A lane needs one offer
	// for all of them.
	offeredTogether = 256
	// rereadsAtOnce is how many tenants that are behind read the log at a time.
	rereadsAtOnce = 8
)

// pass passes the frames of a batch on to their tenants. It never waits: a tenant with too many frames
// reads the later ones again.
func (t *feedTurn) pass(ctx context.Context, batch []*frame.Frame) error {
	var begun []*frame.Frame
	t.mu.Lock()
	all, busy, err := t.addSubscriptions()
	if err == nil {
		for _, fr := range batch {
			switch {
			case len(all[fr.Run.Tenant]) == 0:
			case fr.Kind.Begins():
				begun = append(begun, fr)
			case t.backlog.add(fr):
				busy = append(busy, fr.Run.Tenant)
			}
		}
		t.backlog.read = batch[len(batch)-1].Pos
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	for _, fr := range begun {
		_, err := t.Records.Note(fr)
		t.logUnreadable(fr, err)
	}
	t.start(ctx, busy)
	t.advanced()
	return nil
}

// start feeds tenants that were idle.
func (t *feedTurn) start(ctx context.Context, tenants []string) {
	for _, tenant := range tenants {
		t.group.Go(func() error { return t.feed(ctx, tenant) })
	}
}

// advanced reports that the progress of the turn has changed.
func (t *feedTurn) advanced() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// feed offers the frames of a tenant until it is idle.
func (t *feedTurn) feed(ctx context.Context, tenant string) error {
	for {
		frames, ok, err := t.nextFrames(ctx, tenant)
		if err != nil || !ok {
			return err
		}
		upTo, err := t.offer(ctx, tenant, frames)
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.backlog.done(tenant)
		if upTo > 0 {
			t.offered[tenant] = upTo
		}
		t.mu.Unlock()
		t.advanced()
	}
}

// nextFrames returns the next frames of a tenant. ok is false if it is idle now.
func (t *feedTurn) nextFrames(ctx context.Context, tenant string) (frames []*frame.Frame, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	frames, behind, ok := t.backlog.take(tenant, offeredTogether)
	if !ok || frames != nil {
		return frames, ok, nil
	}
	if len(t.View.Of(tenant)) == 0 { // a new subscription starts after what is read
		t.backlog.drop(tenant)
		return nil, false, nil
	}
	upTo := t.backlog.read
	t.mu.Unlock()
	frames, upTo, err = t.reread(ctx, tenant, behind, upTo)
	t.mu.Lock()
	if err != nil || !t.backlog.reread(tenant, frames, behind, upTo) {
		return nil, true, err
	}
	return frames, true, nil
}

// reread reads frames of a tenant from the log.
func (t *feedTurn) reread(ctx context.Context, tenant string, after, upTo uint64) (out []*frame.Frame, read uint64, err error) {
	if err := t.rereads.Acquire(ctx, 1); err != nil {
		return nil, 0, err
	}
	defer t.rereads.Release(1)
	frames, read, err := t.Log.TenantPage(ctx, tenant, after, upTo, offeredTogether, t.logDamaged)
	for _, fr := range frames {
		if fr.Kind.Begins() {
			_, err := t.Records.Note(fr)
			t.logUnreadable(fr, err)
			continue
		}
		out = append(out, light(fr))
	}
	return out, read, err
}

func (t *feedTurn) logDamaged(_ subject.Run, pos uint64, err error) {
	t.Logger.Error("webhooks: a frame of the run log is damaged", "position", pos, "error", err)
}

// offer offers frames of a tenant. It returns the position of the last one that a lane got.
func (t *feedTurn) offer(ctx context.Context, tenant string, frames []*frame.Frame) (upTo uint64, err error) {
	list := t.View.Of(tenant)
	starts := t.startsOf(list)
	all := offers{}
	for _, fr := range frames {
		chosen, err := t.selectSubscriptions(ctx, fr, list)
		if err != nil {
			return 0, err
		}
		for _, e := range chosen {
			if at, known := starts[e.Revision]; known && fr.Pos > at {
				all.add(laneID{tenant, e.ID, fr.Run.RunID}, fr, countWanted(e, fr))
				upTo = fr.Pos
			}
		}
	}
	writes, writing := errgroup.WithContext(ctx)
	writes.SetLimit(offersEach)
	for _, one := range all.order {
		writes.Go(func() error { return t.offerLane(writing, one) })
	}
	if err := writes.Wait(); err != nil {
		return upTo, err
	}
	return upTo, t.recordDropped(ctx, all.order)
}

// offerLane writes one offer. It drops the offer if the subscription has as many lanes as it may have.
func (t *feedTurn) offerLane(ctx context.Context, one *offer) error {
	if err := t.offers.Acquire(ctx, 1); err != nil {
		return err
	}
	defer t.offers.Release(1)
	if one.dropped = !t.Limit.reserve(one.id); one.dropped {
		return nil
	}
	err := t.Lanes.Offer(ctx, one.id, one.workflow, one.after, one.upTo)
	if err != nil {
		t.Limit.withdraw(one.id)
	}
	return err
}

// recordDropped counts the events of dropped offers with their subscriptions, so that their tenant can
// find out. After a crash the frames are offered again, and events may be counted twice.
func (t *feedTurn) recordDropped(ctx context.Context, all []*offer) error {
	events := map[hookID]int{}
	for _, one := range all {
		if one.dropped {
			events[hookOf(one.id)] += one.events
		}
	}
	for h, n := range events {
		now := t.Clock()
		e, began, err := t.Store.Drop(ctx, h.tenant, h.webhook, n, now)
		if errors.Is(err, subscription.ErrNotFound) { // it was deleted
			continue
		}
		if err != nil {
			return err
		}
		t.View.Learn(e)
		t.Counts.Dropped.Add(int64(n))
		if began {
			t.Logger.Warn("webhooks: a webhook has too many runs with pending deliveries, events of other runs are dropped",
				"webhook", h.webhook, "tenant", h.tenant, "runs", t.Limit.most)
		}
	}
	return nil
}

// countWanted returns the number of a frame's events that a subscription wants.
func countWanted(e *subscription.Entry, fr *frame.Frame) (n int) {
	for _, kind := range fr.Types {
		if e.WantsType(kind) {
			n++
		}
	}
	return n
}

// startsOf returns the positions after which subscriptions are fed, by revision. New ones have none
// yet: addSubscriptions lets their frames be read again.
func (t *feedTurn) startsOf(list []*subscription.Entry) map[uint64]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[uint64]uint64{}
	for _, e := range list {
		if at, known := t.starts[e.Revision]; known {
			out[e.Revision] = at
		}
	}
	return out
}

// offers are the offers of some frames, one for each lane.
type offers struct {
	order []*offer
	byID  map[laneID]*offer
}

type offer struct {
	id          laneID
	workflow    string
	after, upTo uint64
	events      int
	dropped     bool
}

func (o *offers) add(id laneID, fr *frame.Frame, events int) {
	if known := o.byID[id]; known != nil {
		known.upTo = fr.Pos
		known.events += events
		return
	}
	if o.byID == nil {
		o.byID = map[laneID]*offer{}
	}
	n := &offer{id: id, workflow: fr.Run.WorkflowID, after: fr.Pos - 1, upTo: fr.Pos, events: events}
	o.byID[id], o.order = n, append(o.order, n)
}
