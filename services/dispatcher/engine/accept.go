package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
)

// errMustSplit says that the acceptor cannot append for the session what precedes an envelope.
var errMustSplit = errors.New("what precedes the envelope has a frame of its own")

// errRefused says that the acceptor takes a request in no way: the model would be asked again for
// the same answer.
var errRefused = errors.New("the acceptor refuses the request")

// mustSplit reports that an envelope may be taken without what precedes it: the acceptor takes only
// that one not, or both are too much together.
func mustSplit(err error) bool {
	if errors.Is(err, errMustSplit) || runlog.IsPermanent(err) {
		return true
	}
	f, ok := fault.As(err)
	return ok && f.Code == fault.ValidationError && f.Details["field"] == "preceding"
}

// Accept runs an envelope through the pipeline; see model.Journal. What the call has to
// tell besides is appended by the acceptor, in one frame with the envelope's events. Where it
// has no answer to that, it is recorded here: the call was made, whatever becomes of its
// envelope. If the acceptor has appended all the same, the log takes nothing that it does not
// follow, so that it is never told twice. Where the two cannot go together, or are more than the
// log takes, the envelope is handed in again by itself.
func (j journal) Accept(ctx context.Context, req model.AcceptRequest) (model.Outcome, error) {
	out, err := j.submitEnvelope(ctx, req)
	if err == nil || len(req.Preceding) == 0 || errors.Is(err, runlog.ErrConflict) || ctx.Err() != nil {
		return out, err // it is told, there is nothing to tell, or nobody who may
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

// submitEnvelope hands an envelope to the acceptor, with what precedes it.
func (j journal) submitEnvelope(ctx context.Context, req model.AcceptRequest) (model.Outcome, error) {
	outcome := make(chan model.Outcome, 1) // nobody may be left to take it
	err := j.sendRequest(ctx, request{call: func(ctx context.Context) error {
		if !j.s.acceptorMayAppend(req.Preceding) {
			return errMustSplit
		}
		req := req
		req.Preceding = j.s.machine.WithTrust(req.Preceding)
		a, err := j.acceptEnvelope(ctx, req)
		switch {
		case fault.CodeOf(err) == fault.ValidationError:
			return fmt.Errorf("%w: %w", errRefused, err)
		case err != nil:
			return err
		}
		j.s.adoptAccepted(a)
		a.Outcome.Preceded = len(a.Preceding) > 0
		outcome <- a.Outcome
		return nil
	}})
	if err != nil {
		return model.Outcome{}, err
	}
	return <-outcome, nil
}

// acceptorMayAppend reports whether the acceptor may append drafts for the session. It seals nothing,
// so a masked run's are appended here, and a replay compares what it appends.
func (s *session) acceptorMayAppend(drafts []wire.Draft) bool {
	if len(drafts) == 0 {
		return true
	}
	return s.machine.State().Record.Masking == "" && !s.machine.IsReplay() &&
		!slices.ContainsFunc(drafts, func(d wire.Draft) bool { return !d.Type.MayPrecede() || d.CausationID != "" })
}

// allEvents are the events that the acceptor has appended, or recalls.
func (a Accepted) allEvents() []wire.Event { return slices.Concat(a.Preceding, a.Events) }

// adoptAccepted goes on after what the acceptor has appended.
func (s *session) adoptAccepted(a Accepted) {
	if a.Head.Pos != s.head.Pos {
		s.onFirstAppend()
	}
	s.head = a.Head
	events := a.allEvents()
	s.adoptEvents(events)
	s.spans.apply(events)
}
