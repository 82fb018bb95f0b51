package eventlog

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// viewBytes is the memory of a view without its run and its document.
const viewBytes = 512

// views caches the states and snapshots of runs that are read. A snapshot is rendered once per head
// of a run.
type views struct {
	frames project.Frames

	mu    sync.Mutex // guards cache, not the views in it
	cache *lru.Cache[store.Key, *view]
}

// view is the cached state of a run for readers.
type view struct {
	turn chan struct{} // token: its holder may use the fields below
	run  *project.Run
	snap snapshot
	// fold is nil until the folded view is read; folded is the size of its document.
	fold   *fold.Fold
	folded int
}

// snapshot is a rendered RunSnapshot and the position of the run.
type snapshot struct {
	doc    []byte
	head   int
	pos    uint64
	status wire.Status
	// waits is what the run waits for, heard the time of its last event.
	waits *project.Waits
	heard string
	owner store.Owner
	// version and digest identify the definition that the run executes.
	version, digest string
}

func newViews(frames project.Frames, bytes int) *views {
	return &views{frames: frames, cache: lru.New[store.Key, *view](bytes)}
}

// at returns the run's snapshot as of the row, or a later one.
func (v *views) at(ctx context.Context, row store.Run) (snap snapshot, err error) {
	err = v.with(ctx, row, func(w *view) { snap = w.snap })
	return snap, err
}

// asked returns the run's open questions as of the row, or later.
func (v *views) asked(ctx context.Context, row store.Run) (out []*runstate.OpenInterrupt, status wire.Status, err error) {
	err = v.with(ctx, row, func(w *view) {
		status = w.run.State.Status
		for _, i := range w.run.State.Questions() {
			out = append(out, w.run.State.Shown(i))
		}
	})
	return out, status, err
}

// with calls do with the run as of the row, or later. do must not retain it.
func (v *views) with(ctx context.Context, row store.Run, do func(w *view)) error {
	w := v.view(row.Key)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	if w.snap.doc == nil || w.snap.pos < row.Pos {
		if err := w.advance(ctx, v.frames, row); err != nil {
			w.run, w.snap = nil, snapshot{} // it may be partly updated
			return err
		}
		v.cost(row.Key, w)
	}
	do(w)
	return nil
}

// final returns the snapshot of a run that has ended: nothing can follow, so neither log nor store
// is read.
func (v *views) final(key store.Key) (snapshot, bool) {
	v.mu.Lock()
	w, ok := v.cache.Get(key)
	v.mu.Unlock()
	if !ok {
		return snapshot{}, false
	}
	select {
	case w.turn <- struct{}{}:
	default: // in use; use the slow path
		return snapshot{}, false
	}
	defer func() { <-w.turn }()
	return w.snap, w.snap.doc != nil && w.snap.status.Terminal()
}

func (v *views) view(key store.Key) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	w, ok := v.cache.Get(key)
	if !ok {
		w = &view{turn: make(chan struct{}, 1)}
		v.cache.Put(key, w, viewBytes)
	}
	return w
}

// cost updates the size of the view in the cache, unless it was evicted.
func (v *views) cost(key store.Key, w *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if cached, ok := v.cache.Get(key); ok && cached == w {
		v.cache.Put(key, w, viewBytes+2*w.run.Bytes+len(w.snap.doc)+2*w.folded)
	}
}

// clear drops all views, because the store is rebuilt.
func (v *views) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cache.Clear()
}

// erase drops the views of erased runs. A reader that has a view still gets what it has read.
func (v *views) erase(all []store.Erasure) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range all {
		v.cache.Delete(e.Key)
	}
}

// size returns the approximate memory of the views.
func (v *views) size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cache.Cost()
}

// advance folds up to the row and renders.
func (w *view) advance(ctx context.Context, frames project.Frames, row store.Run) (err error) {
	if w.run == nil {
		w.run, err = project.Load(ctx, frames, row)
	} else {
		err = w.run.Extend(ctx, frames, row)
	}
	if err != nil {
		return err
	}
	w.snap = snapshot{
		doc:     w.run.State.SnapshotJSON(),
		head:    row.Head,
		pos:     row.Pos,
		status:  w.run.State.Status,
		waits:   w.run.Waits(),
		heard:   w.run.LastEventAt(),
		owner:   w.run.Owner(),
		version: w.run.State.Record.WorkflowVersion,
		digest:  w.run.State.Record.WorkflowDigest,
	}
	return nil
}
