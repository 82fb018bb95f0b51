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

// ErrNotFound says that the tenant has no such subscription.
var ErrNotFound = errors.New("no such subscription")

// prefix begins the keys of all subscriptions: w.<tenant>.<id>.<part>.
const prefix = "w."

// The two parts of a subscription.
const (
	partSub   = "sub"
	partState = "state"
)

func keyOf(tenant, id, part string) string { return prefix + tenant + "." + id + "." + part }

// Store keeps subscriptions.
type Store struct{ kv kv.Store }

// NewStore keeps them in a bucket.
func NewStore(s kv.Store) *Store { return &Store{s} }

// Create stores a new subscription. It is there once its second part is: the state is
// written first.
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

// Ensure stores a subscription whose id follows from what it is for, unless somebody else
// does at the same time.
func (s *Store) Ensure(ctx context.Context, sub Subscription, st State) error {
	if _, err := s.Create(ctx, sub, st); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	// They may have been ended between the two parts.
	_, err := s.write(ctx, keyOf(sub.Tenant, sub.ID, partSub), sub, 0)
	if errors.Is(err, kv.ErrConflict) {
		return nil
	}
	return err
}

// Get reads a subscription. What cannot be an id is none's: a bucket takes no such key.
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

// List gives a tenant's subscriptions by id.
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

// Delete takes a subscription away. Errors: ErrNotFound, kv.ErrUnavailable.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	e, err := s.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := s.kv.Delete(ctx, keyOf(tenant, id, partSub), e.Revision); err != nil {
		if errors.Is(err, kv.ErrConflict) { // it never changes: it was deleted meanwhile
			return ErrNotFound
		}
		return err
	}
	for { // a delivery may note how it went
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

// change alters the state; nothing is written when f says that nothing has changed.
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

// Rotate makes a new secret. The one before signs beside it for the overlap; any
// older one no longer does.
func (s *Store) Rotate(ctx context.Context, secrets *Secrets, tenant, id string, now time.Time, overlap time.Duration) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool {
		st := &e.State
		st.Previous, st.PreviousUntil = st.Key, now.Add(overlap)
		st.Key = secrets.Key(tenant, id, st.Key.Generation+1)
		return true
	})
}

// Fail notes that a delivery failed.
func (s *Store) Fail(ctx context.Context, tenant, id string, now time.Time) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool { e.State.Health.fail(now, e.terms()); return true })
}

// Succeed notes that a delivery was taken.
func (s *Store) Succeed(ctx context.Context, tenant, id string) (*Entry, error) {
	return s.change(ctx, tenant, id, func(e *Entry) bool { return e.State.Health.succeed() })
}

// ErrBusy says that somebody else tries the one delivery of a half-open breaker.
var ErrBusy = errors.New("somebody else tries a delivery")

// Probe takes the one delivery that a half-open breaker lets through.
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

// cut takes a key apart.
func cut(key string) (tenant, id, part string, err error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), ".")
	if !strings.HasPrefix(key, prefix) || len(parts) != 3 {
		return "", "", "", fmt.Errorf("key %q is none of a subscription", key)
	}
	return parts[0], parts[1], parts[2], nil
}
