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
		return fault.New(fault.RunTerminal, "the run has ended; nothing can follow")
	}
	return l.seen.remember(at, frames[:i+1])
}

// later is the head further on: an outcome recorded before the caller's head is
// known to the caller already.
func later(a, b frame.Head) frame.Head {
	if b.Pos > a.Pos {
		return b
	}
	return a
}

// Record appends the entry's events as one frame after the caller's head.
func (l *LogLedger) Record(ctx context.Context, at Place, e Entry) (*Record, error) {
	now := l.clock()
	events := make([]wire.Event, 0, len(e.Drafts))
	for i, d := range e.Drafts {
		events = append(events, d.Place(at.Run.RunID, at.Head.Next+i, now))
	}
	f := frame.New(at.Run, subject.Step, at.Head, events)
	pos, err := l.log.Append(ctx, f, at.Head.Pos)
	if err != nil {
		l.seen.forget(at.Run)
		return nil, logFault(err)
	}
	f.Pos = pos
	l.seen.append(at, f.Head(), e.CorrelationID)
	r := recordOf(f, events, e.CorrelationID)
	if r == nil {
		return nil, fault.New(fault.InternalError, "the recorded events do not tell their envelope")
	}
	return r, nil
}

// logFault translates what the log says.
func logFault(err error) error {
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
