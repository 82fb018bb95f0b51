package waiting

import (
	"context"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
)

// holders knows which processes are alive: each renews a record of its own. Only the clock of this
// process counts, and only from when it first looked for a process.
type holders struct {
	store    kv.Store
	me       string
	patience time.Duration
	clock    func() time.Time

	mu      sync.Mutex           // guards what follows
	seen    map[string]time.Time // when a renewal was first seen
	at      map[string]uint64    // the revision of that renewal
	gone    map[string]bool      // processes that have said so
	renewed time.Time            // of this process's own record
}

func newHolders(store kv.Store, me string, patience time.Duration, clock func() time.Time) *holders {
	return &holders{store: store, me: me, patience: patience, clock: clock, seen: map[string]time.Time{}, at: map[string]uint64{}, gone: map[string]bool{}}
}

// take sees a record of a process.
func (h *holders) take(e kv.Entry) {
	process := e.Key[len(holderPrefix):]
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Value == nil {
		h.gone[process] = true
		delete(h.seen, process)
		delete(h.at, process)
		return
	}
	if h.at[process] == e.Revision { // a watch that begins again shows it again
		return
	}
	delete(h.gone, process)
	h.seen[process], h.at[process] = h.clock(), e.Revision
}

// alive reports whether a process may still hold what is its own.
func (h *holders) alive(process string) bool {
	if process == h.me {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[process] {
		return false
	}
	last, ok := h.seen[process]
	if !ok { // its record may be on its way
		last = h.clock()
		h.seen[process] = last
	}
	return h.clock().Sub(last) < h.patience
}

// renew writes this process's record.
func (h *holders) renew(ctx context.Context) error {
	at := h.clock()
	if _, err := h.store.Put(ctx, holderPrefix+h.me, []byte(`{}`)); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewed = at
	return nil
}

// fresh reports whether other processes take this one for alive.
func (h *holders) fresh() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock().Sub(h.renewed) < h.patience*3/4
}

// leave deletes this process's record: what it holds is free at once.
func (h *holders) leave(ctx context.Context) {
	e, err := h.store.Get(ctx, holderPrefix+h.me)
	if err == nil {
		_ = h.store.Delete(ctx, e.Key, e.Revision) // it lapses anyway
	}
}

// forget deletes the records of processes that died long ago.
func (h *holders) forget(ctx context.Context) {
	h.mu.Lock()
	var dead []string
	for process, at := range h.seen {
		if process != h.me && h.clock().Sub(at) > 20*h.patience {
			dead = append(dead, process)
			delete(h.seen, process)
			h.gone[process] = true
		}
	}
	h.mu.Unlock()
	for _, process := range dead {
		if e, err := h.store.Get(ctx, holderPrefix+process); err == nil {
			_ = h.store.Delete(ctx, e.Key, e.Revision) // another process may have done it
		}
	}
}
