package lease

import "context"

// FollowRank calls f with the rank of this process among the live ones, ordered by id from 0, and
// with their number. The first call is made once all leases are known, further ones after each
// change, until ctx ends. A draining process counts until it releases its lease, a silent one until
// it is expired. With Config.Sole there are no others.
func (t *Table) FollowRank(ctx context.Context, f func(rank, of int)) error {
	lastRank, lastOf := -1, -1
	for {
		t.mu.Lock()
		rank, of := t.rank()
		known, changed := t.known || t.cfg.Sole, t.changed
		t.mu.Unlock()
		if known && (rank != lastRank || of != lastOf) {
			lastRank, lastOf = rank, of
			f(rank, of)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// rank is the rank of this process. Call it with the lock.
func (t *Table) rank() (rank, of int) {
	of = 1
	if t.cfg.Sole {
		return rank, of
	}
	for id, s := range t.others {
		if s.record.State.isOver() {
			continue
		}
		of++
		if id < t.own.Process {
			rank++
		}
	}
	return rank, of
}

// markKnown records that all leases of the others are known.
func (t *Table) markKnown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
	t.notify()
}
