package lease

import "context"

// FollowRank calls f with the place of this process among those that may act, in the order of
// their ids from 0, and with their number; first once all leases are known, then after each
// change, until ctx ends. A process that drains counts until it released its lease, one that is
// silent until it is expired. With Config.Sole there are no others.
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

// rank is the place of this process. Call it with the lock.
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

// markKnown marks the leases of the others as known.
func (t *Table) markKnown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
	t.notify()
}
