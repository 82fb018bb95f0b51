package subscription

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

// ErrNotFound means that the tenant has no such subscription.
var ErrNotFound = errors.New("no such subscription")

// prefix starts the keys of all subscriptions: w.<tenant>.<id>.<part>.
const prefix = "w."

// The two parts of a subscription.
const (
	partSub   = "sub"
	partState = "state"
)

func keyOf(tenant, id, part string) string { return prefix + tenant + "." + id + "." + part }

// Store keeps subscriptions in a bucket.
type Store struct{ kv kv.Store }

// NewStore makes a store over a bucket.
func NewStore(s kv.Store) *Store { return &Store{s} }

// Create stores a new subscription. The state is written first: a subscription exists once
// both parts do.
func (s *Store) Create(ctx context.Context, sub Subscription, st State) (*Entry, error) {
	e := &Entry{Subscription: sub, State: st}
	var err error
	if e.StateRevision, err = s.write(ctx, keyOf(sub.Tenant, sub.ID, partState), st, 0); err != nil {
		return nil, err
	}
	e.Revision, err = s.write(ctx, keyOf(sub.Tenant, sub.ID, partSub), sub, 0)
	return e, err
}

func (s *Store) write(ctx context.Context, key string, v any, revision uint64) (uint64, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return s.kv.Update(ctx, key, b, revision)
}

// Ensure stores a subscription with a derived id. It succeeds if another replica creates the
// same one concurrently.
func (s *Store) Ensure(ctx context.Context, sub Subscription, st State) error {
	if _, err := s.Create(ctx, sub, st); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	// The other replica may have stopped between the two parts.
	_, err := s.write(ctx, keyOf(sub.Tenant, sub.ID, partSub), sub, 0)
	if errors.Is(err, kv.ErrConflict) {
		return nil
	}
	return err
}

// Get reads a subscription. An invalid id is not found, since the bucket rejects such keys.
// Errors: ErrNotFound, kv.ErrUnavailable.
func (s *Store) Get(ctx context.Context, tenant, id string) (*Entry, error) {
	if !subject.Token(id) {
		return nil, ErrNotFound
	}
	e := &Entry{}
	for _, p := range []struct {
		part string
		into any
		rev  *uint64
	}{{partSub, &e.Subscription, &e.Revision}, {partState, &e.State, &e.StateRevision}} {
		got, err := s.kv.Get(ctx, keyOf(tenant, id, p.part))
		if errors.Is(err, kv.ErrNotFound) {
			return nil, ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(got.Value, p.into); err != nil {
			return nil, fmt.Errorf("read %s: %w", got.Key, err)
		}
		*p.rev = got.Revision
	}
	return e, nil
}

// List returns a tenant's subscriptions, ordered by id.
func (s *Store) List(ctx context.Context, tenant string) ([]*Entry, error) {
	found, err := kv.List(ctx, s.kv, prefix+tenant+".")
	if err != nil {
		return nil, err
	}
	all := newIndex()
	for _, e := range found {
		if err := all.apply(e); err != nil {
			return nil, err
		}
	}
	return all.tenant(tenant), nil
}

// Any reports whether there is a subscription of any tenant. Errors: kv.ErrUnavailable.
func (s *Store) Any(ctx context.Context) (bool, error) {
	keys, err := s.kv.Keys(ctx, prefix)
	return len(keys) > 0, err
}

// Delete deletes a subscription. Errors: ErrNotFound, kv.ErrUnavailable.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	e, err := s.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := s.kv.Delete(ctx, keyOf(tenant, id, partSub), e.Revision); err != nil {
		if errors.Is(err, kv.ErrConflict) { // this part never changes, so it was deleted concurrently
			return ErrNotFound
		}
		return err
	}
	for { // a delivery may update the state concurrently
		st, err := s.kv.Get(ctx, keyOf(tenant, id, partState))
		if err == nil {
			err = s.kv.Delete(ctx, st.Key, st.Revision)
		}
		if !errors.Is(err, kv.ErrConflict) {
			if errors.Is(err, kv.ErrNotFound) {
				return nil
			}
			return err
		}
	}
}

// change updates the state. It writes nothing if f returns false.
func (s *Store) change(ctx context.Context, tenant, id string, f func(*Entry) bool) (*Entry, error) {
	for {
		e, err := s.Get(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if !f(e) {
			return e, nil
		}
		rev, err := s.write(ctx, keyOf(tenant, id, partState), e.State, e.StateRevision)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		e.StateRevision = rev
		return e, err
	}
}

// Rotate creates a new secret. The previous one also signs during the overlap; older ones no
// longer do.
func (s *Store) Rotate(ctx context.Context, secrets *Secrets, tenant, id string, now time.Time, overlap time.Duration) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool {
		st := &e.State
		st.Previous, st.PreviousUntil = st.Key, now.Add(overlap)
		st.Key = secrets.Key(tenant, id, st.Key.Generation+1)
		return true
	})
}

// Fail records a failed delivery.
func (s *Store) Fail(ctx context.Context, tenant, id string, now time.Time) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool { e.State.Health.fail(now, e.terms()); return true })
}

// Succeed records a successful delivery.
func (s *Store) Succeed(ctx context.Context, tenant, id string) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool { return e.State.Health.succeed() })
}

// dropPause ends a series of dropped events.
const dropPause = time.Minute

// Drop records that events were not queued. began is true for the first ones after a pause.
func (s *Store) Drop(ctx context.Context, tenant, id string, events int, now time.Time) (e *Entry, began bool, err error) {
	e, err = s.change(ctx, tenant, id, func(e *Entry) bool {
		d := &e.State.Dropped
		began = now.Sub(d.Last) >= dropPause
		if d.Events == 0 {
			d.First = now
		}
		d.Events += int64(events)
		d.Last = now
		return true
	})
	return e, began, err
}

// ErrBusy means that another worker probes the half-open breaker.
var ErrBusy = errors.New("another worker probes the webhook")

// Probe claims the single delivery that a half-open breaker admits.
func (s *Store) Probe(ctx context.Context, tenant, id string, now time.Time) (*Entry, error) {
	busy := false
	e, err := s.change(ctx, tenant, id, func(e *Entry) bool {
		h := &e.State.Health
		busy = now.Before(h.Admits(now))
		if busy || h.Condition(now) != HalfOpen {
			return false
		}
		h.probe(now)
		return true
	})
	if err == nil && busy {
		return e, ErrBusy
	}
	return e, err
}

// splitKey splits a key into its parts.
func splitKey(key string) (tenant, id, part string, err error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), ".")
	if !strings.HasPrefix(key, prefix) || len(parts) != 3 {
		return "", "", "", fmt.Errorf("key %q is not a subscription key", key)
	}
	return parts[0], parts[1], parts[2], nil
}
