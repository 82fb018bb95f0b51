package eventlog

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

const (
	// firstPage is the number of events that are first read from the backlog, followPage the largest
	// number at a time. A page grows while events are small.
	firstPage  = 8
	followPage = 1000
	// followBytes is the approximate maximum size of one message of a stream, and of the events that
	// are kept for a follower that does not read.
	followBytes = 256 << 10
)

// Follow streams a run's events: first the recorded ones, then the live ones, without gaps or
// duplicates, and ends after the terminal event (OpenWOP host contract §4.2).
func (s *Service) Follow(req *eventlogv1.FollowRequest, stream grpc.ServerStreamingServer[eventlogv1.FollowResponse]) error {
	ctx := stream.Context()
	key := store.Key{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	row, err := s.current(ctx, key)
	if err != nil {
		return err
	}
	// Subscribe before reading the backlog. Frames committed in between arrive twice and are
	// deduplicated by sequence.
	sub := s.hub.Subscribe(key)
	defer sub.Close()
	f, err := s.follower(ctx, row, req)
	if err != nil {
		return s.failure(key, err)
	}
	f.send = stream.Send
	return f.run(ctx, sub)
}

// follower is the state of one stream.
type follower struct {
	s    *Service
	key  store.Key
	send func(*eventlogv1.FollowResponse) error

	from  int          // the first event the caller requested
	next  int          // the next event to process
	page  int          // the number of events to read next
	state *project.Run // folded up to next, if snapshots are requested
	first *eventlogv1.FollowResponse
	ended bool // the terminal event was processed
}

func (s *Service) follower(ctx context.Context, row store.Run, req *eventlogv1.FollowRequest) (*follower, error) {
	after := max(int(req.GetAfter()), -1)
	f := &follower{s: s, key: row.Key, from: after + 1, next: min(after, row.Head) + 1, page: firstPage}
	f.first = &eventlogv1.FollowResponse{Head: int32(row.Head)} //nolint:gosec // G115: sequences are far below 2^31
	if !req.GetSnapshots() {
		return f, nil
	}
	var err error
	if f.state, err = project.LoadAt(ctx, s.store, row, f.next-1); err != nil {
		return nil, err
	}
	f.first.InitialSnapshot = f.state.State.SnapshotJSON()
	return f, nil
}

// run serves the backlog, then the subscription.
func (f *follower) run(ctx context.Context, sub *hub.Subscription) error {
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	if f.first != nil {
		f.first.Ended = f.ended
	}
	if err := f.flush(nil); err != nil { // the first response is sent even if it is empty
		return err
	}
	for !f.ended {
		frames, err := sub.Next(ctx)
		switch {
		case errors.Is(err, hub.ErrLagged):
			err = f.catchUp(ctx)
		case errors.Is(err, hub.ErrClosed):
			err = unavailable("the host stops")
		case err == nil:
			err = f.live(ctx, frames)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// catchUp processes the events in the store.
func (f *follower) catchUp(ctx context.Context) error {
	row, err := f.s.store.Run(ctx, f.key)
	if errors.Is(err, store.ErrNotFound) && f.s.erasedMeanwhile(f.key) {
		return runNotFound(f.key)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil // the store is being rebuilt; the run's frames will be published again
	}
	if err != nil {
		return f.s.failure(f.key, err)
	}
	for f.next <= row.Head {
		if some, err := f.catchUpPage(ctx, row); err != nil || !some {
			return err
		}
	}
	f.ended = f.ended || row.Status.Terminal()
	return damage(row)
}

// catchUpPage processes a page of the events in the store; false if there is none. Followers of one
// tenant take turns to read.
func (f *follower) catchUpPage(ctx context.Context, row store.Run) (some bool, err error) {
	if f.first != nil {
		f.first.Ended = row.Status.Terminal()
	}
	give, err := f.s.backlogs.Take(ctx, f.key.Tenant)
	if err != nil {
		return false, err
	}
	events, err := f.s.events(ctx, f.key, f.next, min(f.page, row.Head+1-f.next))
	give() // before the reader takes the page: one that does not read must not stop the others
	if err != nil {
		return false, f.s.failure(f.key, err)
	}
	if len(events) == 0 {
		return false, nil
	}
	return true, f.take(f.fitting(events))
}

// fitting returns the first events of a page that fit into a message, and sets the size of the next
// page. The others are read again, because the follower may not read for long.
func (f *follower) fitting(events []*eventlogv1.Event) []*eventlogv1.Event {
	size := 0
	for i, e := range events {
		if size += len(e.GetDocument()); size >= followBytes {
			f.page = i + 1
			return slices.Clone(events[:i+1]) // the rest can be freed
		}
	}
	f.page = min(f.page*firstPage, followPage)
	return events
}

// live processes frames of the subscription. Gaps after a rebuild of the store are read from the
// store.
func (f *follower) live(ctx context.Context, frames []*hub.Frame) error {
	for _, fr := range frames {
		if fr.First > f.next {
			return f.catchUp(ctx)
		}
		var events []*eventlogv1.Event
		for i := max(f.next-fr.First, 0); i < len(fr.Docs); i++ {
			events = append(events, event(fr.First+i, fr.Types[i], fr.Docs[i]))
		}
		if err := f.take(events); err != nil {
			return err
		}
	}
	return nil
}

// take processes events that start at f.next and sends the requested ones.
func (f *follower) take(events []*eventlogv1.Event) error {
	var group []*eventlogv1.Event
	size := 0
	for _, e := range events {
		if err := f.fold(e); err != nil {
			return err
		}
		f.next++
		f.ended = f.ended || wire.EventType(e.GetType()).Terminal()
		if int(e.GetSequence()) < f.from {
			continue
		}
		if group, size = append(group, e), size+len(e.GetDocument())+len(e.GetSnapshot()); size < followBytes {
			continue
		}
		if err := f.flush(group); err != nil {
			return err
		}
		group, size = nil, 0
	}
	if len(group) == 0 {
		return nil
	}
	return f.flush(group)
}

// fold attaches the snapshot as of the event, if requested.
func (f *follower) fold(e *eventlogv1.Event) error {
	if f.state == nil {
		return nil
	}
	if err := f.state.Replay(e.GetDocument()); err != nil {
		return f.s.failure(f.key, err)
	}
	if int(e.GetSequence()) >= f.from {
		e.Snapshot = f.state.State.SnapshotJSON()
	}
	return nil
}

// flush sends a group of events. The first response also carries the initial data.
func (f *follower) flush(events []*eventlogv1.Event) error {
	resp := f.first
	if resp == nil && len(events) == 0 {
		return nil
	}
	if resp == nil {
		resp = &eventlogv1.FollowResponse{}
	}
	f.first, resp.Events = nil, events
	return f.send(resp)
}
