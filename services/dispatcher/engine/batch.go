package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
)

// maxBatchBytes limits the payload bytes of one batch, as Config.MaxBatch limits its entries. The
// effects of a wide run end together, and each append waits for fsync.
const maxBatchBytes = 256 << 10

func (r request) size() (n int) {
	for _, d := range r.drafts {
		n += len(d.Payload)
	}
	return n
}

func (d effectResult) size() (n int) {
	for _, v := range d.result.Output.Ports {
		n += len(v)
	}
	for _, draft := range d.result.Drafts {
		n += len(draft.Payload)
	}
	return n
}

// appendDrafts appends the drafts of a request and of the requests waiting behind it in one frame.
// Each request receives the result of the append.
func (s *session) appendDrafts(ctx context.Context, r request) error {
	var (
		batch  []request
		other  *request // it needs something else than an append
		size   int
		before = len(s.unflushed)
	)
	for now, more := s.exec.deps.Clock(), true; more; {
		switch {
		case r.call != nil:
			other, more = &r, false
			continue
		case s.isStale(r.effect):
			r.reply <- context.Canceled
		default:
			drafts := r.drafts
			s.applyInput(func() { s.machine.Emit(now, drafts...) })
			batch, size = append(batch, r), size+r.size()
		}
		if more = len(batch) < s.exec.cfg.MaxBatch && size < maxBatchBytes; more {
			r, more = tryReceive(s.requests)
		}
	}
	err := s.flushWithCatchUp(ctx)
	if runlog.IsPermanent(err) {
		err = s.appendDraftsOneByOne(ctx, batch, before)
	} else {
		for _, r := range batch {
			r.reply <- err
		}
	}
	if errors.Is(err, runlog.ErrConflict) {
		if other != nil {
			other.reply <- err
		}
		return err
	}
	if other != nil {
		return s.serveRequest(ctx, *other)
	}
	return nil
}

// appendDraftsOneByOne appends each request's drafts in a frame of their own, after they exceeded a
// limit together. Only requests that exceed the limit by themselves fail. kept is the number of
// inputs that were unflushed before these requests.
func (s *session) appendDraftsOneByOne(ctx context.Context, batch []request, kept int) (err error) {
	now := s.exec.deps.Clock()
	for _, r := range batch {
		if err == nil {
			err = s.dropUnflushed(ctx, kept)
		}
		if err != nil { // as if the first append had failed
			r.reply <- err
			continue
		}
		if s.isStale(r.effect) { // because of a frame of another writer
			r.reply <- context.Canceled
			continue
		}
		s.applyInput(func() { s.machine.Emit(now, r.drafts...) })
		own := s.flushWithCatchUp(ctx)
		r.reply <- own
		switch {
		case own == nil:
			kept = 0
		case !runlog.IsPermanent(own):
			err = own
		}
	}
	if err == nil {
		err = s.dropUnflushed(ctx, kept)
	}
	return err
}

// dropUnflushed reverts the machine to the log plus the first kept unflushed inputs.
func (s *session) dropUnflushed(ctx context.Context, kept int) error {
	if len(s.unflushed) <= kept {
		return nil
	}
	if _, err := s.reloadState(ctx, nil); err != nil {
		return err
	}
	again := s.unflushed[:kept]
	s.unflushed = nil
	for _, do := range again {
		s.applyInput(do)
	}
	return nil
}

// flushWithCatchUp appends the pending events, catching up with frames of other writers first if
// necessary.
func (s *session) flushWithCatchUp(ctx context.Context) error {
	for {
		_, err := s.flushPending(ctx, s.exec.deps.Log.Append, false, false)
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
		if err := s.catchUpWithLog(ctx, nil); err != nil {
			return err
		}
	}
}

// applyResults applies the result of an effect, and the results of others that have ended. If one
// fails, the others are appended first, so that their effects are not repeated.
func (s *session) applyResults(ctx context.Context, d effectResult) error {
	for n, size := 1, d.size(); ; n++ {
		if err := s.applyResult(d); err != nil {
			return errors.Join(err, s.flushWithCatchUp(ctx))
		}
		if n >= s.exec.cfg.MaxBatch || size >= maxBatchBytes {
			return nil
		}
		next, ok := tryReceive(s.results)
		if !ok {
			return nil
		}
		d, size = next, size+next.size()
	}
}
