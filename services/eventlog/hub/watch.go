package hub

import (
	"context"
	"sync"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Change is a run whose row has changed. Without a row, read it from the store.
type Change struct {
	Key store.Key
	Row *store.Run
}

const (
	// maxChanges is the number of runs that may wait for one watcher before its watch ends.
	maxChanges = 1024
	// maxShown is the number of runs of a tenant whose last shown row is cached. An evicted run is
	// shown once more.
	maxShown = 8192
)

// board maps tenants to the watchers of their runs.
type board struct {
	mu      sync.Mutex // guards the fields below
	tenants map[string]*audience
	closed  bool
}

// audience holds the watchers of a tenant's runs.
type audience struct {
	watches map[*Watch]struct{}
	// shown is the last shown part of each run's row.
	shown map[string]shown
}

// shown is the part of a row that a list displays; other changes are not sent.
type shown struct {
	status                            wire.Status
	startedAt, completedAt, errorCode string
	asks                              int
	damaged                           bool
	// lastEvent is the approximate time of the last event: an active run is sent now and then, not
	// at each step.
	lastEvent string
}

// tenSeconds is the length of a wire.TimeLayout prefix with a resolution of ten seconds.
const tenSeconds = len("2006-01-02T15:04:0")

func shownOf(r *store.Run) shown {
	s := shown{r.Status, r.StartedAt, r.CompletedAt, r.ErrorCode, r.Asks, r.Damage != "", r.LastEventAt}
	if len(s.lastEvent) > tenSeconds {
		s.lastEvent = s.lastEvent[:tenSeconds]
	}
	return s
}

// Watch is one watcher's queue: changed runs, each once, in their latest state. Next and Close may
// be called from different goroutines.
type Watch struct {
	hub    *Hub
	tenant string
	wake   chan struct{} // holds a token if there is something to take

	mu    sync.Mutex // guards the fields below
	order []store.Key
	rows  map[store.Key]*store.Run
	err   error
}

// Watch starts to queue the changes of a tenant's runs. The caller closes it.
func (h *Hub) Watch(tenant string) *Watch {
	w := &Watch{hub: h, tenant: tenant, wake: make(chan struct{}, 1), rows: map[store.Key]*store.Run{}}
	b := &h.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		w.cut(ErrClosed)
		return w
	}
	a := b.tenants[tenant]
	if a == nil {
		a = &audience{watches: map[*Watch]struct{}{}, shown: map[string]shown{}}
		b.tenants[tenant] = a
	}
	a.watches[w] = struct{}{}
	h.watches.Add(1)
	return w
}

// Show queues committed rows for the watchers of their tenants.
func (h *Hub) Show(rows []store.Run) {
	if h.watches.Load() == 0 {
		return
	}
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	for i := range rows {
		row := &rows[i]
		if a := h.board.tenants[row.Tenant]; a != nil && a.news(row) {
			a.tell(Change{row.Key, row})
		}
	}
}

// news records the shown part of a row, and reports whether it changed.
func (a *audience) news(row *store.Run) bool {
	now := shownOf(row)
	if before, ok := a.shown[row.RunID]; ok && before == now {
		return false
	}
	if row.Status.Terminal() { // nothing follows
		delete(a.shown, row.RunID)
		return true
	}
	if len(a.shown) >= maxShown {
		clear(a.shown)
	}
	a.shown[row.RunID] = now
	return true
}

func (a *audience) tell(c Change) {
	for w := range a.watches {
		w.push(c)
	}
}

// look makes watchers read a run from the store.
func (b *board) look(key store.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.tenants[key.Tenant]; a != nil {
		delete(a.shown, key.RunID)
		a.tell(Change{Key: key})
	}
}

// cut ends all watches.
func (b *board) cut(err error, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || closed
	for _, a := range b.tenants {
		for w := range a.watches {
			w.cut(err)
		}
	}
}

// Next waits for changes and returns all there are. Errors: ErrLagged if some were lost and the
// watch has ended; ErrClosed; and the context's.
func (w *Watch) Next(ctx context.Context) ([]Change, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.wake:
		}
		if changes, err := w.take(); err != nil || len(changes) > 0 {
			return changes, err
		}
	}
}

func (w *Watch) take() ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		w.notify() // so that the next call ends too
		return nil, w.err
	}
	out := make([]Change, len(w.order))
	for i, key := range w.order {
		out[i] = Change{key, w.rows[key]}
	}
	w.order = nil
	clear(w.rows)
	return out, nil
}

// Close ends the watch. It is safe to call twice.
func (w *Watch) Close() {
	b := &w.hub.board
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.tenants[w.tenant]
	if a == nil {
		return
	}
	if _, ok := a.watches[w]; !ok {
		return
	}
	delete(a.watches, w)
	w.hub.watches.Add(-1)
	if len(a.watches) == 0 {
		delete(b.tenants, w.tenant)
	}
}

func (w *Watch) push(c Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if _, waits := w.rows[c.Key]; !waits {
		if len(w.order) >= maxChanges {
			w.fail(ErrLagged)
			w.hub.lags.Add(1)
			return
		}
		w.order = append(w.order, c.Key)
	}
	w.rows[c.Key] = c.Row
	w.notify()
}

func (w *Watch) cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

func (w *Watch) fail(err error) {
	w.order, w.rows, w.err = nil, map[store.Key]*store.Run{}, err
	w.notify()
}

// notify adds a token; one is enough, because take takes everything.
func (w *Watch) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
