package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// errMustSplit: the acceptor cannot append the preceding events for the session.
var errMustSplit = errors.New("what precedes the envelope has a frame of its own")

// errRefused: the acceptor rejects a request permanently. A retry would call the model again for
// the same answer.
var errRefused = errors.New("the acceptor refuses the request")

// mustSplit reports that an envelope may be accepted without its preceding events: the acceptor
// rejects only those, or both exceed a limit together.
func mustSplit(err error) bool {
	if errors.Is(err, errMustSplit) || runlog.IsPermanent(err) {
		return true
	}
	f, ok := fault.As(err)
	return ok && f.Code == fault.ValidationError && f.Details["field"] == "preceding"
}

// Accept runs an envelope through the pipeline; see model.Journal. The acceptor appends the call's
// preceding events in one frame with the envelope's events.
//
// If the acceptor fails, the preceding events are recorded here, because the call was made. If the
// acceptor appended its frame nevertheless, this append conflicts, so no event is recorded twice.
// If both cannot go together, or exceed a limit of the log, the envelope is submitted again by
// itself.
func (j journal) Accept(ctx context.Context, req model.AcceptRequest) (model.Outcome, error) {
	out, err := j.submitEnvelope(ctx, req)
	if err == nil || len(req.Preceding) == 0 || errors.Is(err, runlog.ErrConflict) || ctx.Err() != nil {
		return out, err // done, or no preceding events, or the session is over
	}
	if err := j.Record(ctx, req.Preceding...); err != nil {
		return model.Outcome{}, err
	}
	if !mustSplit(err) {
		return model.Outcome{}, err
	}
	req.Preceding = nil
	out, err = j.submitEnvelope(ctx, req)
	out.Preceded = true
	return out, err
}

// acceptEnvelope calls the acceptor for an effect and adopts the events that it appended.
func (s *session) acceptEnvelope(ctx context.Context, req model.AcceptRequest) (model.Outcome, error) {
	if !acceptorMayAppend(s.machine, req.Preceding) {
		return model.Outcome{}, errMustSplit
	}
	req.Preceding = s.machine.WithTrust(req.Preceding)
	a, err := s.callAcceptor(ctx, req)
	switch {
	case fault.CodeOf(err) == fault.ValidationError:
		return model.Outcome{}, fmt.Errorf("%w: %w", errRefused, err)
	case err != nil:
		return model.Outcome{}, err
	}
	s.adoptAccepted(a)
	a.Outcome.Preceded = len(a.Preceding) > 0
	return a.Outcome, nil
}

// callAcceptor calls the acceptor with the current head, again after each conflict, and while no
// acceptor can be reached. An acceptor that recorded the outcome before returns it for any head, so
// the session must first read the frames of other writers.
func (s *session) callAcceptor(ctx context.Context, req model.AcceptRequest) (a Accepted, err error) {
	for {
		head, boundary := s.claim.head, s.machine.State().Record.TrustBoundary
		err = s.untilReachable(ctx, func() (err error) {
			a, err = s.exec.deps.Acceptor.Accept(ctx, s.claim.run, head, boundary, req)
			return err
		})
		a.Head.Ownership = head.Ownership // the acceptor leaves the ownership unchanged
		if err == nil && a.directlyFollows(head) || err != nil && !errors.Is(err, runlog.ErrConflict) {
			return a, err
		}
		if err := s.catchUpWithLog(ctx, nil); err != nil {
			return Accepted{}, err
		}
	}
}

// acceptorMayAppend reports whether the acceptor may append drafts for the session. It does not
// mask, so drafts of a masked run are appended by the session. So are those of a replay, which
// compares each event with its source.
func acceptorMayAppend(m *machine.Machine, drafts []wire.Draft) bool {
	if len(drafts) == 0 {
		return true
	}
	return m.State().Record.Masking == "" && !m.IsReplay() &&
		!slices.ContainsFunc(drafts, func(d wire.Draft) bool { return !d.Type.MayPrecede() || d.CausationID != "" })
}

// allEvents are the events that the acceptor appended, or returned from an earlier frame.
func (a Accepted) allEvents() []wire.Event { return slices.Concat(a.Preceding, a.Events) }

// directlyFollows reports that the log has no events between a head and the accepted ones.
func (a Accepted) directlyFollows(head frame.Head) bool {
	if a.Head.Pos == head.Pos {
		return true
	}
	events := a.allEvents()
	return len(events) > 0 && events[0].Sequence == head.Next && a.Head.Next == head.Next+len(events)
}

// adoptAccepted updates the session after the acceptor appended.
func (s *session) adoptAccepted(a Accepted) {
	if a.Head.Pos != s.claim.head.Pos {
		s.active.begun()
	}
	s.claim.head = a.Head
	events := a.allEvents()
	s.adoptEvents(events)
	s.spans.apply(events)
}
