package webhook

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

// laneID identifies a lane: the deliveries of one run to one subscription, which are sent in
// order.
type laneID struct{ Tenant, Webhook, RunID string }

// lanePrefix starts the keys of all lanes.
const lanePrefix = "lane."

func (id laneID) key() string { return lanePrefix + id.Tenant + "." + id.Webhook + "." + id.RunID }

func parseLaneID(key string) (laneID, error) {
	parts := strings.Split(strings.TrimPrefix(key, lanePrefix), ".")
	if !strings.HasPrefix(key, lanePrefix) || len(parts) != 3 {
		return laneID{}, fmt.Errorf("key %q is not a lane key", key)
	}
	return laneID{parts[0], parts[1], parts[2]}, nil
}

// lane is the delivery progress of one run to one subscription.
type lane struct {
	Workflow string `json:"workflow"`
	// Pos is the position of the last frame that is delivered. UpTo is the position of the
	// last frame that the subscription wants.
	Pos  uint64 `json:"pos"`
	UpTo uint64 `json:"upTo"`
	// Seq is the sequence of the next event to deliver.
	Seq int `json:"seq"`
	// Attempts, Reason and NextAt describe the failed attempts of the next event.
	Attempts int       `json:"attempts,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	NextAt   time.Time `json:"nextAt,omitzero"`
	// Owner is the worker that delivers the lane. Its lease ends at Until.
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// Due returns when a worker may claim the lane.
func (l *lane) Due() time.Time {
	if l.Owner != "" && l.Until.After(l.NextAt) {
		return l.Until
	}
	return l.NextAt
}

// Run returns the run's address in the log.
func (l *lane) Run(id laneID) subject.Run {
	return subject.Run{Tenant: id.Tenant, WorkflowID: l.Workflow, RunID: id.RunID}
}

// release ends the owner's lease.
func (l *lane) release() { l.Owner, l.Until = "", time.Time{} }

// laneStore keeps lanes in a bucket.
type laneStore struct{ kv kv.Store }

// newLaneStore makes a store over a bucket whose keys are created and deleted often.
func newLaneStore(s kv.Store) *laneStore { return &laneStore{s} }

// Errors of claiming or writing a lane.
var (
	errLaneTaken = errors.New("the lane is owned by another process")
	errLaneGone  = errors.New("the lane does not exist")
	// errLaneDamaged is returned with the revision at which the lane can be replaced.
	errLaneDamaged = errors.New("the lane is damaged")
)

func (s *laneStore) get(ctx context.Context, id laneID) (*lane, uint64, error) {
	e, err := s.kv.Get(ctx, id.key())
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, errLaneGone
	}
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return nil, 0, err
	}
	var l lane
	if err := errors.Join(err, json.Unmarshal(e.Value, &l)); err != nil {
		return nil, e.Revision, fmt.Errorf("%w: %s: %w", errLaneDamaged, id.key(), err)
	}
	return &l, e.Revision, nil
}

func (s *laneStore) put(ctx context.Context, id laneID, l *lane, revision uint64) (uint64, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return 0, fmt.Errorf("write lane: %w", err)
	}
	return s.kv.Update(ctx, id.key(), b, revision)
}

// Offer records that the frames of a run after one position, up to another, hold events for
// a subscription.
func (s *laneStore) Offer(ctx context.Context, id laneID, workflow string, after, upTo uint64) error {
	for {
		l, rev, err := s.get(ctx, id)
		switch {
		case errors.Is(err, errLaneGone):
			l = &lane{Workflow: workflow, Pos: after, UpTo: upTo}
		case errors.Is(err, errLaneDamaged): // everything is delivered again
			l = &lane{Workflow: workflow, UpTo: upTo}
		case err != nil:
			return err
		case l.UpTo >= upTo: // offered before
			return nil
		default:
			l.UpTo = upTo
			if l.Attempts == 0 { // it was postponed because it was finished, not after a failure
				l.NextAt = time.Time{}
			}
		}
		if _, err = s.put(ctx, id, l, rev); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// heldLane is a lane that this process has claimed. It is for one goroutine.
type heldLane struct {
	laneID
	lane
	lanes *laneStore
	rev   uint64
	owner string
	lease time.Duration
}

// Claim claims a lane for an owner, which must write to it within the lease. Errors:
// errLaneTaken, errLaneGone, kv.ErrUnavailable.
func (s *laneStore) Claim(ctx context.Context, id laneID, owner string, now time.Time, lease time.Duration) (*heldLane, error) {
	l, rev, err := s.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if l.Owner != owner && now.Before(l.Due()) {
		return nil, errLaneTaken
	}
	l.Owner, l.Until = owner, now.Add(lease)
	rev, err = s.put(ctx, id, l, rev)
	if errors.Is(err, kv.ErrConflict) {
		return nil, errLaneTaken
	}
	return &heldLane{laneID: id, lane: *l, lanes: s, rev: rev, owner: owner, lease: lease}, err
}

// update writes the lane. A conflicting write is either the feeder's, which moves UpTo, or
// another owner's, which has taken the lane over.
func (h *heldLane) update(ctx context.Context, f func(*lane)) error {
	next := h.lane
	f(&next)
	for {
		rev, err := h.lanes.put(ctx, h.laneID, &next, h.rev)
		if err == nil {
			h.lane, h.rev = next, rev
			return nil
		}
		if err := h.reload(ctx, err); err != nil {
			return err
		}
		next.UpTo = h.UpTo
	}
}

// reload reads the lane again after a conflicting write.
func (h *heldLane) reload(ctx context.Context, err error) error {
	if !errors.Is(err, kv.ErrConflict) {
		return err
	}
	now, rev, err := h.lanes.get(ctx, h.laneID)
	if err != nil {
		return err
	}
	if now.Owner != h.owner {
		return errLaneTaken
	}
	h.UpTo, h.rev = now.UpTo, rev
	return nil
}

// RecordDone records that an event was delivered or given up, and renews the lease.
func (h *heldLane) RecordDone(ctx context.Context, seq int, now time.Time) error {
	return h.update(ctx, func(l *lane) {
		l.Seq, l.Attempts, l.Reason, l.NextAt, l.Until = seq+1, 0, "", time.Time{}, now.Add(h.lease)
	})
}

// SkipFrame marks a frame as delivered in memory only. The next write stores it.
func (h *heldLane) SkipFrame(pos uint64, next int) { h.Pos, h.Seq = pos, next }

// SkipEvent marks the next event as not needing delivery, in memory only. Its failed
// attempts do not count against the event after it.
func (h *heldLane) SkipEvent(seq int) {
	h.Seq, h.Attempts, h.Reason, h.NextAt = seq+1, 0, "", time.Time{}
}

// RecordFailure records a failed attempt and releases the lane until at.
func (h *heldLane) RecordFailure(ctx context.Context, seq int, reason string, at time.Time) error {
	return h.update(ctx, func(l *lane) {
		l.Seq, l.Reason, l.NextAt = seq, reason, at
		l.Attempts++
		l.release()
	})
}

// Release releases the lane unchanged.
func (h *heldLane) Release(ctx context.Context) error {
	return h.update(ctx, func(l *lane) { l.release() })
}

// Postpone releases a finished lane until at, and keeps it: a deleted lane that is offered
// again would be delivered again.
func (h *heldLane) Postpone(ctx context.Context, at time.Time) error {
	return h.update(ctx, func(l *lane) {
		l.NextAt = at
		l.release()
	})
}

// Finish deletes the lane if no frame is left to deliver. It returns false if the feeder has
// offered more.
func (h *heldLane) Finish(ctx context.Context) (bool, error) {
	done := h.UpTo
	err := h.lanes.kv.Delete(ctx, h.key(), h.rev)
	if err == nil {
		return true, nil
	}
	if err := h.reload(ctx, err); err != nil {
		return false, err
	}
	return false, h.update(ctx, func(l *lane) { l.Pos = max(l.Pos, done) })
}

// Delete deletes the lane with its pending deliveries.
func (h *heldLane) Delete(ctx context.Context) error {
	for {
		err := h.lanes.kv.Delete(ctx, h.key(), h.rev)
		if err == nil {
			return nil
		}
		if err := h.reload(ctx, err); err != nil {
			return err
		}
	}
}

// Watch calls handle for every existing lane, then for each change; a deleted lane is nil.
// It returns when ctx ends or the bucket cannot be watched.
func (s *laneStore) Watch(ctx context.Context, ready chan<- struct{}, handle func(laneID, *lane)) error {
	return s.kv.Watch(ctx, lanePrefix, ready, func(e kv.Entry) {
		id, err := parseLaneID(e.Key)
		if err != nil {
			return
		}
		var l lane
		if e.Value == nil || json.Unmarshal(e.Value, &l) != nil {
			handle(id, nil)
			return
		}
		handle(id, &l)
	})
}

// PendingLane is a lane with pending deliveries.
type PendingLane struct {
	laneID
	lane
}

// List returns the lanes of a subscription that have pending deliveries, ordered by run.
func (s *laneStore) List(ctx context.Context, tenant, webhook string) ([]PendingLane, error) {
	found, err := kv.List(ctx, s.kv, lanePrefix+tenant+"."+webhook+".")
	if err != nil {
		return nil, err
	}
	var out []PendingLane
	for _, e := range found {
		id, err := parseLaneID(e.Key)
		if err != nil {
			return nil, err
		}
		p := PendingLane{laneID: id}
		if json.Unmarshal(e.Value, &p.lane) != nil {
			continue // damaged
		}
		if p.Pos < p.UpTo { // otherwise all frames are delivered
			out = append(out, p)
		}
	}
	return out, nil
}
