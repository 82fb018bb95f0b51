package writebehind

import (
	"context"

	"waybill.dev/waybill/services/eventlog/store"
)

// Run returns a run's row; see store.Reader.
func (s *Store) Run(ctx context.Context, key store.Key) (store.Run, error) {
	s.mu.Lock()
	r, ok := s.lookup(key)
	if ok {
		row := r.row
		s.mu.Unlock()
		row.New = false
		return row, nil
	}
	s.mu.Unlock()
	return s.below.Run(ctx, key)
}

// lookup finds a run in memory.
func (s *Store) lookup(key store.Key) (*run, bool) {
	if r, ok := s.runs[key]; ok {
		return r, true
	}
	return s.recent.Get(key)
}

// maxLookups limits how often Frames reads memory and the store below. One pass is enough
// unless frames leave memory between the two reads.
const maxLookups = 3

// Frames returns frames of a run; see store.Reader. Memory holds the last frames of a run;
// earlier ones come from the store below. Frames that leave memory between the two reads are
// committed, so the next pass finds them below.
func (s *Store) Frames(ctx context.Context, key store.Key, from, limit int) (page []store.Frame, err error) {
	for range maxLookups {
		found, whole := false, false
		if page, found, whole = s.extend(nil, key, from, limit); whole {
			return page, nil
		}
		if page, err = s.below.Frames(ctx, key, from, limit); err != nil || !found {
			return page, err
		}
		if page, _, whole = s.extend(page, key, from, limit); whole {
			return page, nil
		}
	}
	return page, nil
}

// extend appends a run's frames from memory to a page. found reports whether memory holds any
// frames of the run, whole whether the page has no gap.
func (s *Store) extend(page []store.Frame, key store.Key, from, limit int) (_ []store.Frame, found, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.lookup(key)
	if !found || len(page) == 0 && !r.covers(from) {
		return page, found, false
	}
	page, whole = r.extend(page, from, limit)
	return page, true, whole
}

// List lists runs; see store.Lister.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.List(ctx, q)
}

// Due lists due timers; see store.Lister.
func (s *Store) Due(ctx context.Context, beforeMs int64, after store.Timer, limit int) ([]store.Run, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.Due(ctx, beforeMs, after, limit)
}

// Owned lists the runs of an owner; see store.Lister.
func (s *Store) Owned(ctx context.Context, process string, after store.Key, limit int) ([]store.Run, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.Owned(ctx, process, after, limit)
}

// Substitutions lists substitutions; see store.Lister.
func (s *Store) Substitutions(ctx context.Context, tenant, since string, limit int) ([]store.Substitution, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.Substitutions(ctx, tenant, since, limit)
}

// waitCommitted waits until every batch applied before the call is committed.
func (s *Store) waitCommitted(ctx context.Context) error {
	s.mu.Lock()
	target := s.applied
	s.mu.Unlock()
	for {
		s.mu.Lock()
		done, changed, err := s.committed >= target, s.changed, s.err
		s.mu.Unlock()
		if done || err != nil {
			return err
		}
		signal(s.flushNow)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Oldest lists the oldest ended runs of workflows; see store.Ender.
func (s *Store) Oldest(ctx context.Context, after store.Workflow, limit int) ([]store.Run, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.Oldest(ctx, after, limit)
}

// Ended lists ended runs; see store.Ender.
func (s *Store) Ended(ctx context.Context, q store.EndedQuery) ([]store.Run, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.Ended(ctx, q)
}

// CountEnded counts ended runs; see store.Ender.
func (s *Store) CountEnded(ctx context.Context, of store.Workflow, before []string) ([]int64, error) {
	if err := s.waitCommitted(ctx); err != nil {
		return nil, err
	}
	return s.below.CountEnded(ctx, of, before)
}
