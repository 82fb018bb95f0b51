// Package ingest keeps the read model up to date with the run log. It follows the log from the end
// of the store's last batch, applies each batch in one transaction, and then notifies waiters.
//
// The flow of a batch: load its runs, fold (package project), commit rows, frames and position
// together, advance the position for waiters, publish to followers. A batch holds whatever the log
// had ready: a single frame on a quiet host is committed immediately, a backlog in large steps. The
// next batch is read and checked while one is applied.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// backoff is for a log or a store that fails.
var backoff = retry.Policy{Base: 50 * time.Millisecond, Max: 5 * time.Second}

// Store is the part of the store that ingest uses.
type Store interface {
	store.Writer
	store.Reader
}

// Log is the part of the run log that ingest uses.
type Log interface {
	runlog.Follower
	// Run returns all frames of a run, also of a sealed one; see runlog.Reader.
	Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error)
}

// Ingester applies the log. Create it with New.
type Ingester struct {
	log   Log
	store Store
	hub   *hub.Hub
	slog  *slog.Logger

	progress progress
	target   atomic.Uint64 // end of the log when following began
	counts   counts
	ending   *ending
	proj     *projector
	onEmpty  func()
	onErase  func([]store.Erasure)
	tail     store.Tail // of the store when following began; used only by Run's goroutine

	mu      sync.Mutex // guards the fields below
	trouble error      // why the read model is behind; nil if it is not
	restart context.CancelCauseFunc
}

// counts are the counters of Stats.
type counts struct{ frames, batches, damaged, refused, rebuilds, hotBytes atomic.Int64 }

// Stats counts what the ingester has done since its creation.
type Stats struct {
	Frames   int64  // applied
	Batches  int64  // committed
	Damaged  int64  // frames the log could not read
	Refused  int64  // frames that did not fit their run
	Rebuilds int64  // of the store
	HotBytes int64  // memory of active runs
	Applied  uint64 // position in the log
	Target   uint64 // end of the log when following began
	Lost     uint64 // frames read from the end of the log that the log has lost
}

// New returns an ingester. It caches up to hotBytes of active runs. onEmpty is called after the
// store was emptied, onErase after runs were erased; nil disables it.
func New(
	log Log, s Store, h *hub.Hub, hotBytes int, onEmpty func(), onErase func([]store.Erasure), logger *slog.Logger,
) *Ingester {
	if onErase == nil {
		onErase = func([]store.Erasure) {}
	}
	return &Ingester{
		log: log, store: s, hub: h, slog: logger, onEmpty: onEmpty, onErase: onErase, ending: newEnding(),
		proj:    &projector{store: s, hot: lru.New[store.Key, *project.Run](hotBytes)},
		trouble: errNotStarted,
	}
}

// IndexWords adds the words of runs to the store. It is called before Run.
func (i *Ingester) IndexWords() { i.proj.words = true }

var (
	errNotStarted = errors.New("not started")
	errRebuild    = errors.New("store must be rebuilt")
)

// Run follows the log until ctx ends. It retries every error: the log is authoritative, and the
// store can be rebuilt.
func (i *Ingester) Run(ctx context.Context) error {
	for waits := range backoff.Tries(ctx) {
		began := i.counts.batches.Load()
		err := i.follow(ctx)
		if ctx.Err() != nil {
			i.setTrouble(errNotStarted)
			return nil
		}
		if errors.Is(err, errRebuild) || errors.Is(err, store.ErrDamaged) {
			err = errors.Join(err, i.rebuild(ctx, err))
		}
		if i.counts.batches.Load() > began { // it made progress
			waits.Reset()
		}
		i.setTrouble(err)
		i.slog.Warn("read model falls behind; trying again", "error", err, "backoff", waits.Next())
	}
	return nil
}

// rebuild empties the store, so that the next follow fills it from the start. If the store has
// moved, following resumes at its position.
func (i *Ingester) rebuild(ctx context.Context, why error) error {
	if errors.Is(why, store.ErrMoved) {
		i.slog.Warn("read model has another position than expected; following the run log from there", "error", why)
	} else {
		i.slog.Error("read model will be rebuilt from the run log", "error", why)
		i.counts.rebuilds.Add(1)
	}
	i.setTrouble(why)
	i.progress.set(0)
	err := i.store.Rebuild(ctx)
	i.onEmpty()
	return err
}

// follow applies the log from the position of the store.
func (i *Ingester) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	i.setRestart(cancel)
	defer i.setRestart(nil)
	i.proj.hot.Clear()

	tail, err := i.store.Tail(ctx)
	if err != nil {
		return err
	}
	end, err := i.log.End(ctx)
	if err != nil {
		return err
	}
	if tail.Pos > end {
		i.ending.behind(tail, end)
		return fmt.Errorf("%w: it holds the log up to %d, the log ends at %d", errRebuild, tail.Pos, end)
	}
	i.tail = i.ending.from(tail)
	newest, err := i.log.Newest(ctx)
	if err != nil {
		return err
	}
	i.target.Store(newest)
	ahead := tail.Pos > i.progress.applied()
	i.progress.set(tail.Pos)
	i.setTrouble(nil)
	if ahead { // other writers applied frames that this one will not read
		i.hub.TouchAll()
	}
	// Read the frame at the tail again, to check that it is the same log. Known frames are skipped.
	err = i.stream(ctx, max(i.tail.Pos, 1)-1)
	if cause := context.Cause(ctx); errors.Is(cause, errRebuild) || errors.Is(cause, errShort) {
		return cause
	}
	return err
}

// apply applies one batch of the log, in parts if its sealed runs are large.
func (i *Ingester) apply(ctx context.Context, frames []*frame.Frame) error {
	if first := frames[0]; i.tail.Pos > 0 && first.Pos == i.tail.Pos {
		if first.Hash != i.tail.Hash {
			i.ending.replaced(i.tail)
			return fmt.Errorf("%w: the frame at %d was replaced", errRebuild, first.Pos)
		}
		i.ending.confirm()
	}
	i.ending.back(frames)
	for len(frames) > 0 {
		rest, err := i.applyPart(ctx, frames)
		if err != nil {
			return err
		}
		frames = rest
	}
	return nil
}

// applyPart applies and commits the beginning of a batch: all of it, unless it has many sealed runs.
func (i *Ingester) applyPart(ctx context.Context, frames []*frame.Frame) (rest []*frame.Frame, err error) {
	var (
		runs map[store.Key]*project.Run
		part unsealed
	)
	err = i.insist(ctx, func() (err error) {
		if part, rest, err = i.unseal(ctx, frames); err == nil {
			runs, err = i.proj.runs(ctx, part)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	res := i.proj.projectAll(part, runs)
	if err := i.insist(ctx, func() error { return i.store.Apply(ctx, res.batch) }); err != nil {
		return nil, err
	}
	if len(res.batch.Erased) > 0 {
		i.proj.forget(res.batch.Erased)
		i.onErase(res.batch.Erased)
	}
	i.proj.keep(runs)
	i.counts.hotBytes.Store(int64(i.proj.hot.Cost()))
	i.publish(res)
	return rest, nil
}

// mark stores that frames of runs cannot be read. A run that ended before its damaged frame keeps what
// it has.
func (i *Ingester) mark(ctx context.Context, lost []unreadable) error {
	tail, err := i.store.Tail(ctx)
	if err != nil {
		return err
	}
	b := store.Batch{Tail: tail}
	res := result{}
	for _, l := range lost {
		i.proj.hot.Delete(l.key)
		run, err := i.proj.load(ctx, l.key)
		if err != nil {
			return err
		}
		if run == nil || run.Damage != "" || run.State.Status.Terminal() || run.Head.Pos > l.pos {
			continue // without a record, marked by a later frame, or applied before
		}
		run.Lose(l.pos, l.cause)
		b.Runs = append(b.Runs, run.Row())
		res.touch(l.key)
	}
	if len(b.Runs) == 0 {
		return nil
	}
	if err := i.insist(ctx, func() error { return i.store.Apply(ctx, b) }); err != nil {
		return err
	}
	res.batch = b
	i.publish(res)
	return nil
}

// publish notifies waiters and followers of a committed batch.
func (i *Ingester) publish(res result) {
	i.counts.frames.Add(int64(len(res.applied)))
	i.counts.batches.Add(1)
	i.counts.refused.Add(int64(len(res.refused)))
	for _, err := range res.refused {
		i.slog.Error("frame not applied", "error", err)
	}
	i.hub.Publish(res.applied)
	i.hub.Show(res.batch.Runs)
	for key := range res.touched {
		i.hub.Touch(key)
	}
}

// insist repeats a step that does not change memory until it succeeds, the store is damaged, or ctx
// ends.
func (i *Ingester) insist(ctx context.Context, step func() error) (err error) {
	failed := false
	for waits := range backoff.Tries(ctx) {
		err = step()
		if err == nil {
			if failed {
				i.setTrouble(nil)
			}
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrDamaged) {
			return err
		}
		failed = true
		i.setTrouble(err)
		i.slog.Warn("write to the read model failed; trying again", "error", err, "backoff", waits.Next())
	}
	return err
}
