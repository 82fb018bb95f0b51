package accept

import (
	"context"
	"errors"
	"slices"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// retryAfter is what a caller waits before it tries a busy log again.
const retryAfter = time.Second

// LogLedger is the ledger of real runs: the run log itself.
//
// A correlationId is fresh if no frame up to the caller's head has it, and the
// append after that very head succeeds: then nobody can have recorded it in
// between. What is remembered in memory only saves reading, it never decides.
type LogLedger struct {
	log   Log
	clock Clock
	seen  *seen
}

// NewLogLedger makes a ledger over a log.
func NewLogLedger(log Log, clock Clock) *LogLedger {
	return &LogLedger{log: log, clock: clock, seen: newSeen(maxRunsSeen)}
}

// Recall looks the correlationId up in the run's log.
func (l *LogLedger) Recall(ctx context.Context, at Place, correlationID string) (*Record, error) {
	if l.seen.fresh(at, correlationID) {
		return nil, nil
	}
	if r, told, err := l.recallNew(ctx, at, correlationID); told || err != nil {
		return r, err
	}
	frames, err := l.log.Run(ctx, at.Run)
	if err != nil {
		return nil, logFault(err)
	}
	r, err := find(frames, correlationID)
	if err != nil {
		return nil, err
	}
	if r != nil {
		r.Head = later(at.Head, r.Head)
		return r, nil
	}
	return nil, l.admit(at, frames)
}

// recallNew looks only at what the log got since the run was last read. told is
// false when that does not settle it.
func (l *LogLedger) recallNew(ctx context.Context, at Place, correlationID string) (r *Record, told bool, err error) {
	known, _, ok := l.seen.standing(at.Run)
	if !ok || known.Head.Pos > at.Head.Pos || l.seen.has(at.Run, correlationID) {
		return nil, false, nil
	}
	frames, err := l.log.After(ctx, at.Run, known.Head.Pos)
	if err != nil {
		return nil, false, logFault(err)
	}
	if r, err = find(frames, correlationID); err != nil {
		return nil, false, err
	}
	onPath := at.Head == known.Head || slices.ContainsFunc(frames, func(f *frame.Frame) bool { return f.Head() == at.Head })
	if r == nil && !onPath || len(frames) > 0 && frames[len(frames)-1].Kind == subject.End {
		return nil, false, nil // the whole log says what is wrong
	}
	if err := l.seen.extend(at.Run, known.Head, frames); err != nil {
		return nil, false, err
	}
	if r != nil {
		r.Head = later(at.Head, r.Head)
	}
	return r, true, nil
}

// find gives the record of the envelope, or nil.
func find(frames []*frame.Frame, correlationID string) (*Record, error) {
	for _, f := range frames {
		if !slices.ContainsFunc(f.Types, func(t wire.EventType) bool { return slices.Contains(recordTypes(), t) }) {
			continue
		}
		events, err := f.Events()
		if err != nil {
			return nil, err
		}
		if r := recordOf(f, events, correlationID); r != nil {
			return r, nil
		}
	}
	return nil, nil
}

// admit checks that something may follow the caller's head, and remembers what
// the log holds up to there.
func (l *LogLedger) admit(at Place, frames []*frame.Frame) error {
	i := slices.IndexFunc(frames, func(f *frame.Frame) bool { return f.Pos == at.Head.Pos })
	switch {
	case i < 0 && len(frames) > 0 && frames[len(frames)-1].Pos < at.Head.Pos:
		return fault.New(fault.ServiceUnavailable, "the run log has not caught up with the caller").After(retryAfter)
	case i < 0:
		return fault.New(fault.ValidationError, "head.pos: %d is not a frame of the run", at.Head.Pos)
	case frames[i].Head() != at.Head:
		return fault.New(fault.ValidationError, "head: hash or next is not that of the frame at %d", at.Head.Pos)
	case frames[i].Kind == subject.End:
		return errEnded()
	}
	last := frames[len(frames)-1]
	if last.Kind == subject.End {
		return nil // the append will fail; an end must not be taken for a head
	}
	// Who knows less than the log loses the append anyway: what is worth knowing is
	// how the log stands now.
	return l.seen.remember(Place{Run: at.Run, Head: last.Head()}, frames)
}

// Standing is what callers need to know of a run that they do not follow.
type Standing struct {
	// Head is where its log ends.
	Head frame.Head
	// Boundary is the trust it was started with; empty: trusted.
	Boundary wire.Trust
	// Opened says that an executor outside this host carries it out, which need not
	// have followed the taint of what it hands in.
	Opened bool
	// Registration says whose secrets the redactor must know.
	Registration wire.Registration
	// Ended says that nothing more is recorded. What was can be recalled.
	Ended bool
}

// Standing tells how a run stands as far as is known here. It may be out of date:
// then recording fails with a conflict, and Standing tells better afterwards.
// Errors: fault.RunNotFound, ServiceUnavailable.
func (l *LogLedger) Standing(ctx context.Context, run subject.Run) (Standing, error) {
	known, current, ok := l.seen.standing(run)
	switch {
	case current:
		return known, nil
	case ok:
		return l.standingNow(ctx, run, known)
	}
	frames, err := l.log.Run(ctx, run)
	if err != nil {
		return Standing{}, logFault(err)
	}
	s := standingOf(frames)
	if frames[len(frames)-1].Kind == subject.End {
		s.Ended = true
		return s, nil // an end must not be taken for a head
	}
	if s.Head.Next == 0 {
		return s, nil // whoever began it has not come to its first event
	}
	return s, l.seen.remember(Place{Run: run, Head: s.Head}, frames)
}

// Recorded gives what was recorded under a correlationId, or nil. Errors:
// fault.RunNotFound, RunTerminal when the run has ended, ServiceUnavailable.
func (l *LogLedger) Recorded(ctx context.Context, run subject.Run, correlationID string) (*Record, error) {
	frames, err := l.log.Run(ctx, run)
	if err != nil {
		return nil, logFault(err)
	}
	if frames[len(frames)-1].Kind == subject.End {
		return nil, errEnded()
	}
	return find(frames, correlationID)
}

// Ended reads whether a run has ended. Errors: as Standing.
func (l *LogLedger) Ended(ctx context.Context, run subject.Run) (bool, error) {
	known, _, ok := l.seen.standing(run)
	if !ok {
		now, err := l.Standing(ctx, run)
		return now.Ended, err
	}
	// Not Standing: what is remembered may be moved on at the same time.
	frames, err := l.log.After(ctx, run, known.Head.Pos)
	if err != nil {
		return false, logFault(err)
	}
	ended := len(frames) > 0 && frames[len(frames)-1].Kind == subject.End
	if ended {
		l.seen.forget(run)
	}
	return ended, nil
}

// standingNow reads what the log has got since.
func (l *LogLedger) standingNow(ctx context.Context, run subject.Run, known Standing) (Standing, error) {
	frames, err := l.log.After(ctx, run, known.Head.Pos)
	if err != nil {
		return Standing{}, logFault(err)
	}
	s := known
	if len(frames) > 0 {
		last := frames[len(frames)-1]
		s.Head = last.Head()
		if last.Kind == subject.End {
			s.Ended = true
			return s, nil
		}
	}
	return s, l.seen.extend(run, known.Head, frames)
}

// Clarifications counts the clarification requests of a node that are in the
// log, but for the one under except (OpenWOP envelope contract §8).
func (l *LogLedger) Clarifications(ctx context.Context, run subject.Run, nodeID, except string) (int, error) {
	frames, err := l.log.Run(ctx, run)
	if err != nil {
		return 0, logFault(err)
	}
	n := 0
	for _, f := range frames {
		if !slices.Contains(f.Types, wire.EventClarificationRequested) {
			continue
		}
		events, err := f.Events()
		if err != nil {
			return 0, err
		}
		for _, e := range events {
			if e.Type == wire.EventClarificationRequested && e.NodeID == nodeID && e.CausationID != except {
				n++
			}
		}
	}
	return n, nil
}

// later is the head further on: an outcome recorded before the caller's head is
// known to the caller already.
func later(a, b frame.Head) frame.Head {
	if b.Pos > a.Pos {
		return b
	}
	return a
}

// Record appends the entry's events as one frame after the caller's head, those that
// precede it first.
func (l *LogLedger) Record(ctx context.Context, at Place, e Entry) (*Record, error) {
	now := l.clock()
	events := make([]wire.Event, 0, len(e.Preceding)+len(e.Drafts))
	for i, d := range slices.Concat(e.Preceding, e.Drafts) {
		events = append(events, d.Place(at.Run.RunID, at.Head.Next+i, now))
	}
	f := frame.New(at.Run, subject.Step, at.Head, events).In(at.Traceparent)
	pos, err := l.log.Append(ctx, f, at.Head.Pos)
	if err != nil {
		l.seen.outdate(at.Run)
		return nil, logFault(err)
	}
	f.Pos = pos
	l.seen.append(at, f.Head(), e.CorrelationID)
	r := recordOf(f, events, e.CorrelationID)
	if r == nil {
		return nil, fault.New(fault.InternalError, "the recorded events do not tell their envelope")
	}
	r.Preceding = events[:len(e.Preceding)]
	return r, nil
}

// logFault translates what the log says.
func logFault(err error) error {
	if large, ok := errors.AsType[*runlog.TooLargeError](err); ok {
		return fault.New(fault.PayloadTooLarge, "what the envelope causes takes %d bytes in the run log, and its server takes %d at a time; "+
			"send less, or have the operator raise max_payload of the NATS server to %d", large.Size, large.Limit, runlog.MaxFrameBytes).
			With("sizeBytes", large.Size).With("limitBytes", large.Limit).Wrap(err)
	}
	switch {
	case errors.Is(err, runlog.ErrConflict):
		return errors.Join(ErrRaced, err)
	case errors.Is(err, runlog.ErrNotFound):
		return fault.New(fault.RunNotFound, "no run of this id is in the log").Wrap(err)
	case errors.Is(err, runlog.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the run log cannot be reached; try again").After(retryAfter).Wrap(err)
	default:
		return err
	}
}
