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

// retryAfter is the Retry-After of errors that a later try can fix.
const retryAfter = time.Second

// LogLedger is the ledger of real runs: the run log itself.
//
// A correlationId is fresh if no frame up to the caller's head has it and the
// append after that head succeeds. The compare-and-set rules out a record in
// between. The cache saves reads of the log; it never decides.
type LogLedger struct {
	log   Log
	clock Clock
	cache *idCache
}

// NewLogLedger makes a ledger over a log.
func NewLogLedger(log Log, clock Clock) *LogLedger {
	return &LogLedger{log: log, clock: clock, cache: newIDCache(maxCachedRuns)}
}

// Lookup finds the record of the correlationId in the run's log; see Ledger.
func (l *LogLedger) Lookup(ctx context.Context, at Target, correlationID string) (*Record, error) {
	if l.cache.isFresh(at, correlationID) {
		return nil, nil
	}
	if r, decided, err := l.lookupNewFrames(ctx, at, correlationID); decided || err != nil {
		return r, err
	}
	frames, err := l.log.Run(ctx, at.Run)
	if err != nil {
		return nil, logFault(err)
	}
	r, err := findRecord(frames, correlationID)
	if err != nil {
		return nil, err
	}
	if r != nil {
		r.Head = laterHead(at.Head, r.Head)
		return r, nil
	}
	return nil, l.checkHead(at, frames)
}

// lookupNewFrames searches only the frames after the cached head. decided is false
// if they do not suffice; then the whole log must be read.
func (l *LogLedger) lookupNewFrames(ctx context.Context, at Target, correlationID string) (r *Record, decided bool, err error) {
	cached, _, ok := l.cache.runInfo(at.Run)
	if !ok || cached.Head.Pos > at.Head.Pos || l.cache.contains(at.Run, correlationID) {
		return nil, false, nil
	}
	frames, err := l.log.After(ctx, at.Run, cached.Head.Pos)
	if err != nil {
		return nil, false, logFault(err)
	}
	if r, err = findRecord(frames, correlationID); err != nil {
		return nil, false, err
	}
	headFound := at.Head == cached.Head || slices.ContainsFunc(frames, func(f *frame.Frame) bool { return f.Head() == at.Head })
	if r == nil && !headFound || len(frames) > 0 && frames[len(frames)-1].Kind == subject.End {
		return nil, false, nil // checkHead finds the error in the whole log
	}
	if err := l.cache.extend(at.Run, cached.Head, frames); err != nil {
		return nil, false, err
	}
	if r != nil {
		r.Head = laterHead(at.Head, r.Head)
	}
	return r, true, nil
}

// findRecord returns the record of the envelope, or nil.
func findRecord(frames []*frame.Frame, correlationID string) (*Record, error) {
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

// checkHead checks that a frame may follow the caller's head, and caches the run.
func (l *LogLedger) checkHead(at Target, frames []*frame.Frame) error {
	i := slices.IndexFunc(frames, func(f *frame.Frame) bool { return f.Pos == at.Head.Pos })
	switch {
	case i < 0 && len(frames) > 0 && frames[len(frames)-1].Pos < at.Head.Pos:
		return fault.New(fault.ServiceUnavailable, "the run log is behind the caller's head; try again").After(retryAfter)
	case i < 0:
		return fault.New(fault.ValidationError, "head.pos: %d is not a frame of the run", at.Head.Pos)
	case frames[i].Head() != at.Head:
		return fault.New(fault.ValidationError, "head: hash or next is not that of the frame at %d", at.Head.Pos)
	case frames[i].Kind == subject.End:
		return errEnded()
	}
	last := frames[len(frames)-1]
	if last.Kind == subject.End {
		return nil // the append will fail; an end frame must not be cached as a head
	}
	// The append of a caller that is behind the log fails in any case, so the cache
	// gets the log's current head.
	return l.cache.put(Target{Run: at.Run, Head: last.Head()}, frames)
}

// RunInfo is what a caller that does not follow the run's log needs of it.
type RunInfo struct {
	// Head is where the run's log ends.
	Head frame.Head
	// Boundary is the trust the run was started with; empty means trusted.
	Boundary wire.Trust
	// External: an executor outside this host executes the run. It may not track the
	// taint of the envelopes it submits.
	External bool
	// Registration lists whose secrets must be registered with the redactor.
	Registration wire.Registration
	// Ended: nothing more is recorded. Recorded outcomes can be looked up.
	Ended bool
}

// RunInfo returns the run's info, from the cache if possible. It may be out of date:
// then Record fails with a conflict, and the next RunInfo is newer.
// Errors: fault.RunNotFound, ServiceUnavailable.
func (l *LogLedger) RunInfo(ctx context.Context, run subject.Run) (RunInfo, error) {
	cached, current, ok := l.cache.runInfo(run)
	switch {
	case current:
		return cached, nil
	case ok:
		return l.refreshRunInfo(ctx, run, cached)
	}
	frames, err := l.log.Run(ctx, run)
	if err != nil {
		return RunInfo{}, logFault(err)
	}
	info := runInfoOf(frames)
	if frames[len(frames)-1].Kind == subject.End {
		info.Ended = true
		return info, nil // an end frame must not be cached as a head
	}
	if info.Head.Next == 0 {
		return info, nil // the run has no event yet
	}
	return info, l.cache.put(Target{Run: run, Head: info.Head}, frames)
}

// refreshRunInfo reads the frames after the cached head.
func (l *LogLedger) refreshRunInfo(ctx context.Context, run subject.Run, cached RunInfo) (RunInfo, error) {
	frames, err := l.log.After(ctx, run, cached.Head.Pos)
	if err != nil {
		return RunInfo{}, logFault(err)
	}
	info := cached
	if len(frames) > 0 {
		last := frames[len(frames)-1]
		info.Head = last.Head()
		if last.Kind == subject.End {
			info.Ended = true
			return info, nil
		}
	}
	return info, l.cache.extend(run, cached.Head, frames)
}

// FindRecord returns the record of a correlationId, or nil. Errors:
// fault.RunNotFound, RunTerminal when the run has ended, ServiceUnavailable.
func (l *LogLedger) FindRecord(ctx context.Context, run subject.Run, correlationID string) (*Record, error) {
	frames, err := l.log.Run(ctx, run)
	if err != nil {
		return nil, logFault(err)
	}
	if frames[len(frames)-1].Kind == subject.End {
		return nil, errEnded()
	}
	return findRecord(frames, correlationID)
}

// Ended reads from the log whether a run has ended. Errors: as RunInfo.
func (l *LogLedger) Ended(ctx context.Context, run subject.Run) (bool, error) {
	cached, _, ok := l.cache.runInfo(run)
	if !ok {
		info, err := l.RunInfo(ctx, run)
		return info.Ended, err
	}
	// RunInfo could answer from a cache entry that another request has just updated.
	frames, err := l.log.After(ctx, run, cached.Head.Pos)
	if err != nil {
		return false, logFault(err)
	}
	ended := len(frames) > 0 && frames[len(frames)-1].Kind == subject.End
	if ended {
		l.cache.delete(run)
	}
	return ended, nil
}

// CountClarifications counts a node's clarification requests in the log, except
// those under the correlationId except (OpenWOP envelope contract §8).
func (l *LogLedger) CountClarifications(ctx context.Context, run subject.Run, nodeID, except string) (int, error) {
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

// laterHead returns the head with the higher position. A record before the caller's
// head must not move the caller back.
func laterHead(a, b frame.Head) frame.Head {
	if b.Pos > a.Pos {
		return b
	}
	return a
}

// Record appends the entry's events as one frame after the caller's head, the
// preceding events first; see Ledger.
func (l *LogLedger) Record(ctx context.Context, at Target, e Entry) (*Record, error) {
	now := l.clock()
	events := make([]wire.Event, 0, len(e.Preceding)+len(e.Drafts))
	for i, d := range slices.Concat(e.Preceding, e.Drafts) {
		events = append(events, d.Place(at.Run.RunID, at.Head.Next+i, now))
	}
	f := frame.New(at.Run, subject.Step, at.Head, events).In(at.Traceparent)
	pos, err := l.log.Append(ctx, f, at.Head.Pos)
	if err != nil {
		l.cache.markStale(at.Run)
		return nil, logFault(err)
	}
	f.Pos = pos
	l.cache.advance(at, f.Head(), e.CorrelationID)
	r := recordOf(f, events, e.CorrelationID)
	if r == nil {
		return nil, fault.New(fault.InternalError, "the recorded events do not identify their envelope")
	}
	r.Preceding = events[:len(e.Preceding)]
	return r, nil
}

// logFault turns errors of the run log into faults; see Ledger.
func logFault(err error) error {
	if large, ok := errors.AsType[*runlog.TooLargeError](err); ok {
		return fault.New(fault.PayloadTooLarge, "the envelope would append %d bytes to the run log; the limit is %d; "+
			"send less, or raise max_payload of the NATS server to %d", large.Size, large.Limit, runlog.MaxFrameBytes).
			With("sizeBytes", large.Size).With("limitBytes", large.Limit).Wrap(err)
	}
	switch {
	case errors.Is(err, runlog.ErrConflict):
		return errors.Join(ErrRaced, err)
	case errors.Is(err, runlog.ErrNotFound):
		return fault.New(fault.RunNotFound, "the log has no run with this id").Wrap(err)
	case errors.Is(err, runlog.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the run log is unreachable; try again").After(retryAfter).Wrap(err)
	default:
		return err
	}
}
