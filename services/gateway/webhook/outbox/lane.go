// Package outbox keeps what is still to be delivered, and what was given up. It holds
// no event: a lane says how far one run has been delivered to one subscription, and
// up to where there is something for it. The events are in the run log.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/subject"
)

// ID names a lane: the deliveries of one run to one subscription, which are made one
// after the other.
type ID struct{ Tenant, Webhook, RunID string }

// prefix begins the keys of all lanes.
const prefix = "lane."

func (id ID) key() string { return prefix + id.Tenant + "." + id.Webhook + "." + id.RunID }

func parseID(key string) (ID, error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), ".")
	if !strings.HasPrefix(key, prefix) || len(parts) != 3 {
		return ID{}, fmt.Errorf("key %q is none of a lane", key)
	}
	return ID{parts[0], parts[1], parts[2]}, nil
}

// Lane is how far deliveries are.
type Lane struct {
	Workflow string `json:"workflow"`
	// Pos is the position of the last frame that is done, UpTo of the last one that
	// holds something for the subscription.
	Pos  uint64 `json:"pos"`
	UpTo uint64 `json:"upTo"`
	// Seq is the first sequence of the next frame that is not done.
	Seq int `json:"seq"`
	// Attempts, Reason and NextAt are those of the event that is next, if it has failed.
	Attempts int       `json:"attempts,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	NextAt   time.Time `json:"nextAt,omitzero"`
	// Owner delivers now, and is given up at Until.
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// Due is when somebody may go on with the lane.
func (l *Lane) Due() time.Time {
	if l.Owner != "" && l.Until.After(l.NextAt) {
		return l.Until
	}
	return l.NextAt
}

// Run names the run in the log.
func (l *Lane) Run(id ID) subject.Run {
	return subject.Run{Tenant: id.Tenant, WorkflowID: l.Workflow, RunID: id.RunID}
}

// free ends what its owner has begun.
func (l *Lane) free() { l.Owner, l.Until = "", time.Time{} }

// Lanes keeps lanes in a bucket.
type Lanes struct{ kv kv.Store }

// NewLanes keeps them in a bucket whose keys come and go.
func NewLanes(s kv.Store) *Lanes { return &Lanes{s} }

// Errors of a lane that somebody else works on, or that is not there any more.
var (
	ErrTaken = errors.New("the lane is somebody else's")
	ErrGone  = errors.New("the lane is gone")
)

func (s *Lanes) get(ctx context.Context, id ID) (*Lane, uint64, error) {
	e, err := s.kv.Get(ctx, id.key())
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, ErrGone
	}
	if err != nil {
		return nil, 0, err
	}
	var l Lane
	if err := json.Unmarshal(e.Value, &l); err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return &l, e.Revision, nil
}

func (s *Lanes) put(ctx context.Context, id ID, l *Lane, revision uint64) (uint64, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return 0, fmt.Errorf("write lane: %w", err)
	}
	return s.kv.Update(ctx, id.key(), b, revision)
}

// Offer says that the frames of a run between two positions, the first left out, hold
// something for a subscription.
func (s *Lanes) Offer(ctx context.Context, id ID, workflow string, after, upTo uint64) error {
	for {
		l, rev, err := s.get(ctx, id)
		switch {
		case errors.Is(err, ErrGone):
			l = &Lane{Workflow: workflow, Pos: after, UpTo: upTo}
		case err != nil:
			return err
		case l.UpTo >= upTo: // told before
			return nil
		default:
			l.UpTo = upTo
			if l.Attempts == 0 { // it waits because it was done, and not because something failed
				l.NextAt = time.Time{}
			}
		}
		if _, err = s.put(ctx, id, l, rev); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// Held is a lane that this process works on. It is for one goroutine.
type Held struct {
	ID
	Lane
	lanes *Lanes
	rev   uint64
	owner string
	lease time.Duration
}

// Claim takes a lane for an owner, who has to say something within the lease. Errors:
// ErrTaken, ErrGone, kv.ErrUnavailable.
func (s *Lanes) Claim(ctx context.Context, id ID, owner string, now time.Time, lease time.Duration) (*Held, error) {
	l, rev, err := s.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if l.Owner != owner && now.Before(l.Due()) {
		return nil, ErrTaken
	}
	l.Owner, l.Until = owner, now.Add(lease)
	rev, err = s.put(ctx, id, l, rev)
	if errors.Is(err, kv.ErrConflict) {
		return nil, ErrTaken
	}
	return &Held{ID: id, Lane: *l, lanes: s, rev: rev, owner: owner, lease: lease}, err
}

// change writes the lane. The feeder may have moved UpTo meanwhile; anybody else who
// wrote it has taken it over.
func (h *Held) change(ctx context.Context, f func(*Lane)) error {
	next := h.Lane
	f(&next)
	for {
		rev, err := h.lanes.put(ctx, h.ID, &next, h.rev)
		if err == nil {
			h.Lane, h.rev = next, rev
			return nil
		}
		if err := h.again(ctx, err); err != nil {
			return err
		}
		next.UpTo = h.UpTo
	}
}

// again reads the lane after a write that came too late.
func (h *Held) again(ctx context.Context, err error) error {
	if !errors.Is(err, kv.ErrConflict) {
		return err
	}
	now, rev, err := h.lanes.get(ctx, h.ID)
	if err != nil {
		return err
	}
	if now.Owner != h.owner {
		return ErrTaken
	}
	h.UpTo, h.rev = now.UpTo, rev
	return nil
}

// Done notes that an event was delivered or given up; the lane stays this owner's.
func (h *Held) Done(ctx context.Context, seq int, now time.Time) error {
	return h.change(ctx, func(l *Lane) {
		l.Seq, l.Attempts, l.Reason, l.NextAt, l.Until = seq+1, 0, "", time.Time{}, now.Add(h.lease)
	})
}

// Skip notes, here only, that a frame is done: it is written with what comes next.
func (h *Held) Skip(pos uint64, next int) { h.Pos, h.Seq = pos, next }

// Pass notes, here only, that the event which is next needs no delivery any more; how it
// failed before is not counted against the one behind it.
func (h *Held) Pass(seq int) { h.Seq, h.Attempts, h.Reason, h.NextAt = seq+1, 0, "", time.Time{} }

// Fail notes that an event failed, and frees the lane until at.
func (h *Held) Fail(ctx context.Context, seq int, reason string, at time.Time) error {
	return h.change(ctx, func(l *Lane) {
		l.Seq, l.Reason, l.NextAt = seq, reason, at
		l.Attempts++
		l.free()
	})
}

// Free gives the lane back as it is.
func (h *Held) Free(ctx context.Context) error {
	return h.change(ctx, func(l *Lane) { l.free() })
}

// Wait keeps a lane that is done until at: to be offered again would deliver again.
func (h *Held) Wait(ctx context.Context, at time.Time) error {
	return h.change(ctx, func(l *Lane) {
		l.NextAt = at
		l.free()
	})
}

// Finish takes the lane away if there is nothing more to deliver; false: there is.
func (h *Held) Finish(ctx context.Context) (bool, error) {
	done := h.UpTo
	err := h.lanes.kv.Delete(ctx, h.key(), h.rev)
	if err == nil {
		return true, nil
	}
	if err := h.again(ctx, err); err != nil {
		return false, err
	}
	return false, h.change(ctx, func(l *Lane) { l.Pos = max(l.Pos, done) })
}

// Drop takes the lane away with all that is in it.
func (h *Held) Drop(ctx context.Context) error {
	for {
		err := h.lanes.kv.Delete(ctx, h.key(), h.rev)
		if err == nil {
			return nil
		}
		if err := h.again(ctx, err); err != nil {
			return err
		}
	}
}

// Watch calls handle for every lane, first those there, then each change; a lane that
// is gone is nil. It ends with ctx, or when the bucket cannot be watched.
func (s *Lanes) Watch(ctx context.Context, ready chan<- struct{}, handle func(ID, *Lane)) error {
	return s.kv.Watch(ctx, prefix, ready, func(e kv.Entry) {
		id, err := parseID(e.Key)
		if err != nil {
			return
		}
		var l Lane
		if e.Value == nil || json.Unmarshal(e.Value, &l) != nil {
			handle(id, nil)
			return
		}
		handle(id, &l)
	})
}

// Pending is a lane with its name.
type Pending struct {
	ID
	Lane
}

// List gives the lanes of a subscription that hold something, by run.
func (s *Lanes) List(ctx context.Context, tenant, webhook string) ([]Pending, error) {
	found, err := kv.List(ctx, s.kv, prefix+tenant+"."+webhook+".")
	if err != nil {
		return nil, err
	}
	var out []Pending
	for _, e := range found {
		id, err := parseID(e.Key)
		if err != nil {
			return nil, err
		}
		p := Pending{ID: id}
		if err := json.Unmarshal(e.Value, &p.Lane); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
		if p.Pos < p.UpTo { // else all of it is done
			out = append(out, p)
		}
	}
	return out, nil
}
