package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of a page of events and of the wait for one (OpenWOP host contract §4.7).
const (
	defaultEvents = 1000
	maxEvents     = 5000
	maxWait       = 60 * time.Second
)

// answerMargin is subtracted from a caller's deadline, so that an empty answer arrives in time.
const answerMargin = 200 * time.Millisecond

// pageQuery requests the events of a run after a sequence.
type pageQuery struct {
	key   store.Key
	after int
	limit int
}

// ReadEvents returns a page of a run's events. It waits for one while the run
// is live and nothing newer exists (OpenWOP host contract §4.7).
func (s *Service) ReadEvents(ctx context.Context, req *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
	q := pageQuery{
		key:   store.Key{Tenant: req.GetTenant(), RunID: req.GetRunId()},
		after: max(int(req.GetAfter()), -1), limit: pageSize(req.GetLimit(), defaultEvents, maxEvents),
	}
	wait := min(time.Duration(req.GetWaitMs())*time.Millisecond, maxWait)
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-answerMargin)
	}
	if wait > 0 && s.onItsWay(ctx, q) {
		grace := min(wait, askLogAfter)
		resp, err := s.awaitPage(ctx, q, grace)
		if err != nil || len(resp.GetEvents()) > 0 {
			return resp, err
		}
		wait -= grace // an empty answer first checks the log
	}
	return s.currentPage(ctx, q, wait)
}

// askLogAfter is the wait for the next events of a live run before the log is checked. Most events
// arrive sooner.
const askLogAfter = 50 * time.Millisecond

// onItsWay reports whether the caller has all stored events of a live run, so that it waits for a
// future event and the log need not be checked.
func (s *Service) onItsWay(ctx context.Context, q pageQuery) bool {
	if q.after < 0 { // it has none, and the run may be too new to be in the store
		return false
	}
	if !subject.Token(q.key.Tenant) || !subject.Token(q.key.RunID) {
		return false
	}
	row, err := s.store.Run(ctx, q.key)
	return err == nil && !row.Status.Terminal() && !row.Status.Waiting() && row.Damage == "" && q.after == row.Head
}

// currentPage returns a page with everything that was acknowledged before the call, or the first
// one that arrives within the wait.
func (s *Service) currentPage(ctx context.Context, q pageQuery, wait time.Duration) (*eventlogv1.ReadEventsResponse, error) {
	row, err := s.current(ctx, q.key)
	if err != nil {
		return nil, err
	}
	resp, err := s.page(ctx, row, q)
	if err != nil || answers(row, q, resp) || wait <= 0 {
		return resp, err
	}
	return s.awaitPage(ctx, q, wait)
}

// awaitPage waits for a non-empty page; after the wait it returns the empty one.
func (s *Service) awaitPage(ctx context.Context, q pageQuery, wait time.Duration) (*eventlogv1.ReadEventsResponse, error) {
	sub := s.hub.Subscribe(q.key)
	defer sub.Close()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		row, err := s.row(ctx, q.key)
		if err != nil {
			return nil, err
		}
		resp, err := s.page(ctx, row, q)
		if err != nil || answers(row, q, resp) {
			return resp, err
		}
		frames, err := sub.Next(waiting)
		if err != nil && !errors.Is(err, hub.ErrLagged) {
			return resp, ctx.Err() // timeout or shutdown: the caller retries
		}
		if resp, ok := wholeEnd(frames, q); ok {
			return resp, nil
		}
	}
}

// wholeEnd answers from the frames themselves if they take the caller to the run's end. This is the
// most common wait and needs no read of the store. Frames are published after they were stored.
func wholeEnd(frames []*hub.Frame, q pageQuery) (*eventlogv1.ReadEventsResponse, bool) {
	if len(frames) == 0 {
		return nil, false
	}
	last := frames[len(frames)-1]
	if len(last.Types) == 0 || frames[0].First > q.after+1 || last.Last-q.after > q.limit {
		return nil, false
	}
	final := last.Types[len(last.Types)-1]
	if !final.Terminal() {
		return nil, false
	}
	resp := &eventlogv1.ReadEventsResponse{Head: int32(last.Last)} //nolint:gosec // G115: sequences are far below 2^31
	for _, f := range frames {
		for i, doc := range f.Docs {
			if seq := f.First + i; seq > q.after {
				resp.Events = append(resp.Events, event(seq, f.Types[i], doc))
			}
		}
	}
	resp.Status = string(statusOf(final))
	return resp, true
}

// statusOf returns the status of a run after a terminal event.
func statusOf(t wire.EventType) wire.Status {
	switch t {
	case wire.EventRunFailed:
		return wire.StatusFailed
	case wire.EventRunCancelled:
		return wire.StatusCancelled
	default:
		return wire.StatusCompleted
	}
}

// answers reports whether there is nothing to wait for: there are events, or none can arrive
// without outside input, or the caller's cursor is beyond the run's end.
func answers(row store.Run, q pageQuery, resp *eventlogv1.ReadEventsResponse) bool {
	return len(resp.GetEvents()) > 0 || row.Status.Terminal() || row.Status.Waiting() || q.after > row.Head
}

// page reads the events after q.after up to the row's head. Later events would not match its
// status.
func (s *Service) page(ctx context.Context, row store.Run, q pageQuery) (*eventlogv1.ReadEventsResponse, error) {
	resp := &eventlogv1.ReadEventsResponse{Status: string(row.Status), Head: int32(row.Head)} //nolint:gosec // G115: sequences are far below 2^31
	if q.after >= row.Head {
		return resp, nil
	}
	give, err := s.pages.Take(ctx, q.key.Tenant)
	if err != nil {
		return nil, err
	}
	defer give()
	events, err := s.events(ctx, q.key, q.after+1, min(q.limit, row.Head-q.after))
	if err != nil {
		return nil, s.failure(q.key, err)
	}
	resp.Events = events
	return resp, nil
}

// errMoved: a run's events vanished between the read of its row and of its events, because the
// store is being rebuilt. The rest must not pass for the whole.
var errMoved = errors.New("the store was emptied during a read")

// events reads up to limit events from a sequence on that the run's row includes; fewer if they are
// large.
func (s *Service) events(ctx context.Context, key store.Key, from, limit int) ([]*eventlogv1.Event, error) {
	frames, err := s.store.Frames(ctx, key, from, limit)
	if err != nil {
		return nil, err
	}
	out := make([]*eventlogv1.Event, 0, min(limit, defaultEvents))
	for _, f := range frames {
		docs, err := wire.SplitArray(f.Body)
		if err != nil || len(docs) != len(f.Types) {
			return nil, fmt.Errorf("%w: frame %d of run %s does not hold its events", store.ErrDamaged, f.First, key.RunID)
		}
		for i, doc := range docs {
			if seq := f.First + i; seq == from+len(out) && len(out) < limit {
				out = append(out, event(seq, f.Types[i], doc))
			}
		}
	}
	if limit > 0 && (len(out) == 0 || int(out[0].GetSequence()) != from) {
		return nil, fmt.Errorf("event %d of run %s: %w", from, key.RunID, errMoved)
	}
	return out, nil
}

func event(seq int, typ wire.EventType, doc []byte) *eventlogv1.Event {
	return &eventlogv1.Event{Sequence: int32(seq), Type: string(typ), Document: doc} //nolint:gosec // G115: sequences are far below 2^31
}
