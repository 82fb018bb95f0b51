package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

// runBytes is the memory of a run without its bodies.
const runBytes = 1024

// projector turns batches of frames into batches for the store. It caches active runs, so that a
// step does not fold the run again.
type projector struct {
	store store.Reader
	// words is true if runs are found by the words of their contents.
	words bool
	hot   *lru.Cache[store.Key, *project.Run]
}

// result is a projected batch: what to store, and what to publish afterwards.
type result struct {
	batch   store.Batch
	applied []*frame.Frame
	begun   map[store.Key]bool
	// touched are runs whose followers must read the store: their chain broke in this batch, or
	// another writer has applied frames of it.
	touched map[store.Key]bool
	refused []error // frames that were not applied, and why
	erased  map[store.Key]bool
	words   bool
	sealed  map[store.Key]sealing
}

// runs returns the runs of a batch in the state of the store. A run without frames so far is
// absent. On error nothing has changed, so it can be retried.
func (p *projector) runs(ctx context.Context, in unsealed) (map[store.Key]*project.Run, error) {
	runs := make(map[store.Key]*project.Run, len(in.frames)/2)
	for _, f := range in.frames {
		key := project.Key(f.Run)
		if _, ok := runs[key]; ok || f.Kind == subject.Seal && in.seals[key] != sealDamaged {
			continue // the row does not change
		}
		if r, ok := p.hot.Get(key); ok {
			runs[key] = r
			continue
		}
		r, err := p.load(ctx, key)
		if err != nil {
			return nil, err
		}
		runs[key] = r // nil means not in the store
	}
	return runs, nil
}

func (p *projector) load(ctx context.Context, key store.Key) (*project.Run, error) {
	row, err := p.store.Run(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := project.LoadToCount(ctx, p.store, row)
	if errors.Is(err, frame.ErrDamaged) || errors.Is(err, runlog.ErrNotFound) || errors.Is(err, runlog.ErrSealed) {
		// Of a sealed run. The next frame erases it, and the store does not know what it has of it.
		err = fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return run, err
}

// forget drops runs from memory.
func (p *projector) forget(all []store.Erasure) {
	for _, e := range all {
		p.hot.Delete(e.Key)
	}
}

// projectAll applies the frames to their runs.
func (p *projector) projectAll(in unsealed, runs map[store.Key]*project.Run) result {
	var (
		res     = result{sealed: in.seals, words: p.words}
		changed = make(map[store.Key]bool, len(runs))
		order   []store.Key
	)
	for _, f := range in.frames {
		key := project.Key(f.Run)
		if !res.take(f, key, runs) {
			continue
		}
		if at, ok := in.at[f]; ok {
			runs[key].CountAt(f.Pos, at)
		}
		if !changed[key] {
			changed[key] = true
			order = append(order, key)
		}
	}
	for _, key := range order {
		if res.erased[key] {
			continue
		}
		row := runs[key].Row()
		row.New = res.begun[key]
		marks, substitutions := runs[key].Found()
		res.batch.Runs = append(res.batch.Runs, row)
		res.batch.Marks = append(res.batch.Marks, marks...)
		res.batch.Substitutions = append(res.batch.Substitutions, substitutions...)
		res.batch.Tallies = append(res.batch.Tallies, runs[key].Counted()...)
	}
	res.erase(runs)
	last := in.frames[len(in.frames)-1]
	res.batch.Tail = store.Tail{Pos: last.Pos, Hash: last.Hash}
	return res
}

// take applies one frame and reports whether its run's row has changed.
func (r *result) take(f *frame.Frame, key store.Key, runs map[store.Key]*project.Run) bool {
	run, wasWhole := runs[key], true
	var err error
	if f.Kind == subject.Erase {
		if r.erased == nil {
			r.erased = map[store.Key]bool{}
		}
		r.erased[key] = true
		r.touch(key)
		return false
	}
	if f.Kind == subject.Seal {
		if r.sealed[key] == sealWhole {
			r.batch.Sealed = append(r.batch.Sealed, key)
		}
		if run != nil || r.sealed[key] != sealDamaged {
			return false
		}
	} // a run without a row is begun as a damaged one
	if run == nil {
		run, err = project.Begin(f)
		runs[key] = run
		r.begin(key)
	} else {
		wasWhole = run.Damage == ""
		err = run.Apply(f)
	}
	if err != nil {
		r.refuse(err)
		broke := wasWhole && run.Damage != ""
		if broke || errors.Is(err, project.ErrSeen) {
			r.touch(key)
		}
		return broke
	}
	r.applied = append(r.applied, f)
	r.batch.Frames = append(r.batch.Frames, project.Stored(f)...)
	if r.words {
		if found := words.OfFrame(f); len(found) > 0 {
			r.batch.Texts = append(r.batch.Texts, store.Text{Key: key, CreatedAt: run.CreatedAt(), Words: found})
		}
	}
	return true
}

// erase adds the erasures of a batch, and drops what the batch has of their runs.
func (r *result) erase(runs map[store.Key]*project.Run) {
	if len(r.erased) == 0 {
		return
	}
	r.batch.Frames = slices.DeleteFunc(r.batch.Frames, func(f store.Frame) bool { return r.erased[f.Key] })
	r.batch.Texts = slices.DeleteFunc(r.batch.Texts, func(t store.Text) bool { return r.erased[t.Key] })
	r.applied = slices.DeleteFunc(r.applied, func(f *frame.Frame) bool { return r.erased[project.Key(f.Run)] })
	for key := range r.erased {
		e := store.Erasure{Key: key}
		if run := runs[key]; run != nil {
			row := run.Row()
			e.CreatedAt, e.Tags = row.CreatedAt, row.Tags
			e.Marks, e.Substitutions = run.Everything()
		}
		r.batch.Erased = append(r.batch.Erased, e)
		delete(runs, key) // it is not kept in memory
	}
}

func (r *result) begin(key store.Key) {
	if r.begun == nil {
		r.begun = map[store.Key]bool{}
	}
	r.begun[key] = true
}

func (r *result) touch(key store.Key) {
	if r.touched == nil {
		r.touched = map[store.Key]bool{}
	}
	r.touched[key] = true
}

// refuse records why a frame was not applied. Repeated frames are not reported.
func (r *result) refuse(err error) {
	if !errors.Is(err, project.ErrSeen) {
		r.refused = append(r.refused, err)
	}
}

// keep caches the active runs of a committed batch.
func (p *projector) keep(runs map[store.Key]*project.Run) {
	for key, r := range runs {
		if r.State.Status.Terminal() {
			p.hot.Delete(key)
			continue
		}
		p.hot.Put(key, r, runBytes+2*r.Bytes)
	}
}
