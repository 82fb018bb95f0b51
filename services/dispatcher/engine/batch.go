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
		before = len(s.unflushed.inputs)
	)
	for now, more := s.exec.deps.Clock(), true; more; {
		switch {
		case r.accept != nil:
			other, more = &r, false
			continue
		case !s.machine.IsCurrent(r.effect):
			r.done(context.Canceled)
		default:
			drafts := r.drafts
			s.unflushed.apply(func() { s.machine.Emit(now, drafts...) })
			batch, size = append(batch, r), size+r.size()
		}
		if more = len(batch) < s.exec.cfg.MaxBatch && size < maxBatchBytes; more {
			r, more = tryReceive(s.effects.port.requests)
		}
	}
	err := s.flushWithCatchUp(ctx)
	if runlog.IsPermanent(err) {
		err = s.appendDraftsOneByOne(ctx, batch, before)
	} else {
		for _, r := range batch {
			r.done(err)
		}
	}
	if errors.Is(err, runlog.ErrConflict) {
		if other != nil {
			other.done(err)
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
			r.done(err)
			continue
		}
		if !s.machine.IsCurrent(r.effect) { // because of a frame of another writer
			r.done(context.Canceled)
			continue
		}
		s.unflushed.apply(func() { s.machine.Emit(now, r.drafts...) })
		own := s.flushWithCatchUp(ctx)
		r.done(own)
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
