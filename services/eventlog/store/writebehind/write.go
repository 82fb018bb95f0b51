package writebehind

import (
	"context"
	"errors"
	"slices"

	"waybill.dev/waybill/services/eventlog/store"
)

// Tail returns the end position of the last applied batch; see store.Writer.
func (s *Store) Tail(ctx context.Context) (store.Tail, error) {
	s.mu.Lock()
	tail, err := s.tail, s.err
	s.mu.Unlock()
	switch {
	case err != nil:
		return store.Tail{}, err
	case tail != nil:
		return *tail, nil
	default:
		return s.below.Tail(ctx)
	}
}

// Apply accepts a batch; see store.Writer. While the store below fails, it returns that
// error. While too much is pending, it blocks.
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		running, wait, err := s.accept(b)
		if err != nil {
			return err
		}
		if wait == nil {
			if running && len(b.Erased) == 0 && len(b.Sealed) == 0 {
				signal(s.wake)
				return nil
			}
			return s.commitAll(ctx) // reads must not find below what is removed
		}
		signal(s.flushNow)
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// accept adds a batch to memory, or returns a channel to wait on for room.
func (s *Store) accept(b store.Batch) (running bool, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running && s.err != nil {
		return true, nil, s.err
	}
	if s.running && s.pending.bytes > s.cfg.PendingBytes {
		return true, s.changed, nil
	}
	s.acceptErased(b.Erased)
	for _, row := range b.Runs {
		s.acceptRow(row)
	}
	for _, f := range b.Frames {
		s.acceptFrame(f)
	}
	s.acceptSealed(b.Sealed)
	s.pending.marks = append(s.pending.marks, b.Marks...)
	s.pending.substitutions = append(s.pending.substitutions, b.Substitutions...)
	s.pending.tallies = append(s.pending.tallies, b.Tallies...)
	s.pending.texts = append(s.pending.texts, b.Texts...)
	for _, t := range b.Texts {
		s.pending.bytes += frameBytes + wordBytes*len(t.Words)
	}
	s.pending.bytes += frameBytes * (len(b.Marks) + len(b.Substitutions) + len(b.Tallies))
	if s.tail == nil || b.Tail.Pos >= s.tail.Pos {
		s.tail = &b.Tail
	}
	s.pending.tail, s.pending.dirty = *s.tail, true
	s.applied++
	return s.running, nil, nil
}

// acceptSealed drops the frames of sealed runs.
func (s *Store) acceptSealed(all []store.Key) {
	for _, key := range all {
		if r, ok := s.runs[key]; ok {
			r.dropFrames(r.row.Head)
		}
		s.recent.Delete(key)
	}
	s.pending.sealed = append(s.pending.sealed, all...)
	s.pending.bytes += frameBytes * len(all)
}

// acceptErased drops all that memory has of erased runs.
func (s *Store) acceptErased(all []store.Erasure) {
	if len(all) == 0 {
		return
	}
	gone := map[store.Key]bool{}
	for _, e := range all {
		gone[e.Key] = true
		delete(s.runs, e.Key)
		s.recent.Delete(e.Key)
	}
	p := &s.pending
	p.keys = slices.DeleteFunc(p.keys, func(k store.Key) bool { return gone[k] })
	p.frames = slices.DeleteFunc(p.frames, func(f store.Frame) bool { return gone[f.Key] })
	p.texts = slices.DeleteFunc(p.texts, func(t store.Text) bool { return gone[t.Key] })
	p.marks = slices.DeleteFunc(p.marks, func(m store.Mark) bool { return gone[m.Key] })
	p.substitutions = slices.DeleteFunc(p.substitutions, func(v store.Substitution) bool { return gone[v.Key] })
	p.erased = append(p.erased, all...)
	p.bytes += frameBytes * len(all)
}

// acceptRow stores a row unless memory has a newer one.
func (s *Store) acceptRow(row store.Run) {
	r := s.pinRun(row.Key)
	if row.Pos >= r.row.Pos {
		row.New = row.New || r.row.New
		r.row = row
	}
	if !r.pending {
		r.pending = true
		s.pending.keys = append(s.pending.keys, row.Key)
		s.pending.bytes += runBytes
	}
}

// acceptFrame stores a frame of a run whose row is in the same batch.
func (s *Store) acceptFrame(f store.Frame) {
	if s.pinRun(f.Key).add(f) {
		s.pending.frames = append(s.pending.frames, f)
		s.pending.bytes += frameSize(f)
	}
}

// pinRun returns a run that stays in memory until it is committed.
func (s *Store) pinRun(key store.Key) *run {
	if r, ok := s.runs[key]; ok {
		return r
	}
	r, ok := s.recent.Get(key)
	if ok {
		s.recent.Delete(key)
	} else {
		r = &run{bytes: runBytes}
	}
	s.runs[key] = r
	return r
}

// Rebuild empties both stores; see store.Writer.
func (s *Store) Rebuild(ctx context.Context) error {
	s.committing.Lock()
	defer s.committing.Unlock()
	err := s.below.Rebuild(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, s.inFlight, s.tail, s.err = pendingBatch{}, nil, nil, nil
	s.committed = s.applied
	clear(s.runs)
	s.recent.Clear()
	s.notifyWaiters()
	return err
}

// Close commits the rest and closes the store below.
func (s *Store) Close() error {
	return errors.Join(s.commitAll(context.Background()), s.below.Close())
}
