package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/dispatcher/create"
)

// maxTogetherBytes bounds what is taken into one frame of that which is ready at the same
// time, besides Config.MaxTogether. The effects of a wide run end together, and each append
// waits for the disk.
const maxTogetherBytes = 256 << 10

func (r request) size() (n int) {
	for _, d := range r.drafts {
		n += len(d.Payload)
	}
	return n
}

func (d effectDone) size() (n int) {
	for _, v := range d.result.Output.Ports {
		n += len(v)
	}
	for _, draft := range d.result.Drafts {
		n += len(draft.Payload)
	}
	return n
}

// recordAll appends what effects have to tell: this one, and those that are waiting with
// theirs. Each hears of the append before it goes on.
func (s *session) recordAll(ctx context.Context, r request) error {
	var (
		told   []request
		other  *request // it wants something else
		size   int
		before = len(s.given)
	)
	for now, more := s.x.deps.Clock(), true; more; {
		switch {
		case r.do != nil:
			other, more = &r, false
			continue
		case s.stale(r.effect):
			r.reply <- context.Canceled
		default:
			drafts := r.drafts
			s.give(func() { s.m.Emit(now, drafts...) })
			told, size = append(told, r), size+r.size()
		}
		if more = len(told) < s.x.cfg.MaxTogether && size < maxTogetherBytes; more {
			r, more = poll(s.inbox)
		}
	}
	err := s.flushOver(ctx)
	if create.NeverTaken(err) {
		err = s.recordEach(ctx, told, before)
	} else {
		for _, r := range told {
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
		return s.serve(ctx, *other)
	}
	return nil
}

// recordEach appends what each of several effects has to tell by itself, after they were too
// much together: only those hear of it whose own the log will never take. kept is how much was
// pending before they came.
func (s *session) recordEach(ctx context.Context, told []request, kept int) (err error) {
	now := s.x.deps.Clock()
	for _, r := range told {
		if err == nil {
			err = s.takeBack(ctx, kept)
		}
		if err != nil { // as if the first of them had come to it
			r.reply <- err
			continue
		}
		if s.stale(r.effect) { // by what somebody else wrote meanwhile
			r.reply <- context.Canceled
			continue
		}
		s.give(func() { s.m.Emit(now, r.drafts...) })
		own := s.flushOver(ctx)
		r.reply <- own
		switch {
		case own == nil:
			kept = 0
		case !create.NeverTaken(own):
			err = own
		}
	}
	if err == nil {
		err = s.takeBack(ctx, kept)
	}
	return err
}

// takeBack has the machine forget what it was given and is not appended, but for the first of it.
func (s *session) takeBack(ctx context.Context, kept int) error {
	if len(s.given) <= kept {
		return nil
	}
	if _, err := s.reload(ctx, nil); err != nil {
		return err
	}
	again := s.given[:kept]
	s.given = nil
	for _, do := range again {
		s.give(do)
	}
	return nil
}

// flushOver appends what is pending, also if the log has moved on meanwhile.
func (s *session) flushOver(ctx context.Context) error {
	for {
		_, err := s.flush(ctx, s.x.deps.Log.Append, false, false)
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
		if err := s.catchUp(ctx, nil); err != nil {
			return err
		}
	}
}

// settleAll gives the machine the end of an effect, and of those that have ended, too. If
// one of them cannot be settled, the others are in the log first: nobody is asked again.
func (s *session) settleAll(ctx context.Context, d effectDone) error {
	for n, size := 1, d.size(); ; n++ {
		if err := s.settle(d); err != nil {
			return errors.Join(err, s.flushOver(ctx))
		}
		if n >= s.x.cfg.MaxTogether || size >= maxTogetherBytes {
			return nil
		}
		next, ok := poll(s.done)
		if !ok {
			return nil
		}
		d, size = next, size+next.size()
	}
}
