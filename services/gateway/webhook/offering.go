package webhook

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/protocol/frame"
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
	// maxWaiting is how many frames wait, of all tenants. A frame takes some 200 bytes.
	maxWaiting = 1 << 16
)

// offering offers frames to lanes, the tenants side by side.
type offering struct {
	turn   *feedTurn
	group  *errgroup.Group
	places *semaphore.Weighted
}

// pass passes the frames of a batch on to their tenants. It waits while too many frames wait.
func (o *offering) pass(ctx context.Context, batch []*frame.Frame) error {
	end := batch[len(batch)-1].Pos
	all, err := o.turn.addSubscriptions(end)
	if err != nil {
		return err
	}
	for _, fr := range batch {
		tenant := fr.Run.Tenant
		if len(all[tenant]) == 0 {
			continue
		}
		if fr.Kind.Begins() {
			_, err := o.turn.Records.Note(fr)
			o.turn.logUnreadable(fr, err)
			continue
		}
		first, err := o.turn.enqueue(ctx, fr)
		if err != nil {
			return err
		}
		if first {
			o.group.Go(func() error { return o.feed(ctx, tenant) })
		}
	}
	o.turn.advance(func() { o.turn.read = end })
	return nil
}

// enqueue adds a frame to those that wait, as soon as there is room. It reports whether its tenant
// had none.
func (t *feedTurn) enqueue(ctx context.Context, fr *frame.Frame) (first bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.waiting.total >= maxWaiting {
		fewer := t.waiting.notice()
		t.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
			err = ctx.Err()
		}
		t.mu.Lock()
		if err != nil {
			return false, err
		}
	}
	return t.waiting.add(fr), nil
}

// advance changes the progress of the turn.
func (t *feedTurn) advance(change func()) {
	t.mu.Lock()
	change()
	t.mu.Unlock()
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// feed offers the frames of a tenant until none waits.
func (o *offering) feed(ctx context.Context, tenant string) error {
	for {
		o.turn.mu.Lock()
		frames := o.turn.waiting.first(tenant, offeredTogether)
		o.turn.mu.Unlock()
		if len(frames) == 0 {
			return nil
		}
		upTo, err := o.offer(ctx, tenant, frames)
		if err != nil {
			return err
		}
		o.turn.advance(func() {
			o.turn.waiting.done(tenant, len(frames))
			o.turn.offered = max(o.turn.offered, upTo)
		})
	}
}

// offer offers frames of a tenant. It returns the position of the last one that a lane got.
func (o *offering) offer(ctx context.Context, tenant string, frames []*frame.Frame) (upTo uint64, err error) {
	list := o.turn.View.Of(tenant)
	all := offers{}
	for _, fr := range frames {
		chosen, err := o.turn.selectSubscriptions(ctx, fr, list)
		if err != nil {
			return 0, err
		}
		for _, e := range chosen {
			if fr.Pos > o.turn.startOf(e) {
				all.add(laneID{tenant, e.ID, fr.Run.RunID}, fr)
				upTo = fr.Pos
			}
		}
	}
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(offersEach)
	for _, one := range all.order {
		writes.Go(func() error {
			if err := o.places.Acquire(ctx, 1); err != nil {
				return err
			}
			defer o.places.Release(1)
			return o.turn.Lanes.Offer(ctx, one.id, one.workflow, one.after, one.upTo)
		})
	}
	return upTo, writes.Wait()
}

// waiting are the frames that were read and are not offered yet, by tenant, in the order of the log.
type waiting struct {
	frames map[string][]*frame.Frame
	total  int
	// fewer is closed when there are fewer; nil unless a reader waits.
	fewer chan struct{}
}

func newWaiting() waiting { return waiting{frames: map[string][]*frame.Frame{}} }

// add adds a frame, without its body. It reports whether its tenant had none.
func (w *waiting) add(fr *frame.Frame) bool {
	w.total++
	own := append(w.frames[fr.Run.Tenant], &frame.Frame{Run: fr.Run, Kind: fr.Kind, Types: fr.Types, Pos: fr.Pos})
	w.frames[fr.Run.Tenant] = own
	return len(own) == 1
}

// first returns the first frames of a tenant, at most n. They stay there until done.
func (w *waiting) first(tenant string, n int) []*frame.Frame {
	all := w.frames[tenant]
	return slices.Clone(all[:min(n, len(all))])
}

// done removes the first n frames of a tenant.
func (w *waiting) done(tenant string, n int) {
	w.total -= n
	if w.frames[tenant] = w.frames[tenant][n:]; len(w.frames[tenant]) == 0 {
		delete(w.frames, tenant)
	}
	if w.fewer != nil {
		close(w.fewer)
		w.fewer = nil
	}
}

// notice returns a channel that is closed when there are fewer.
func (w *waiting) notice() <-chan struct{} {
	if w.fewer == nil {
		w.fewer = make(chan struct{})
	}
	return w.fewer
}

// before returns the position before the first frame that waits, or else read.
func (w *waiting) before(read uint64) uint64 {
	for _, frames := range w.frames {
		read = min(read, frames[0].Pos-1)
	}
	return read
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
