package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/runview"
)

// retryStreams is the Retry-After at the stream limit.
const retryStreams = 5 * time.Second

// StreamRunEvents sends recorded events, then new ones, until the terminal event (OpenWOP
// host contract §4). A disconnect never cancels the run.
func (s *Service) StreamRunEvents(req *openwopv1.StreamRunEventsRequest, out grpc.ServerStreamingServer[openwopv1.RunEventEnvelope]) error {
	tenant := auth.From(out.Context()).Tenant
	if !s.streams.Take(tenant, 1) {
		return errTooManyStreams(s.streams.Limit())
	}
	defer s.streams.Give(tenant, 1)
	if err := checkRunID(req.GetRunId()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	after := int32(-1)
	if req.LastSequence != nil {
		after = int32(min(max(req.GetLastSequence(), -1), maxCursor)) //nolint:gosec // G115: bounded just here
	}
	wantSnapshots := slices.ContainsFunc(req.GetStreamModes(), func(m string) bool { return strings.Contains(m, string(runview.ModeValues)) })
	in, err := s.deps.EventLog.Follow(ctx, &eventlogv1.FollowRequest{
		Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId(), After: after, Snapshots: wantSnapshots,
	})
	if err != nil {
		return err
	}
	first, err := in.Recv() // an unknown run is reported before invalid parameters
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	modes, perr := checkStream(req)
	if perr != nil {
		return perr
	}
	resumed := req.LastSequence != nil && after >= 0
	if resumed && first != nil && after > first.GetHead() {
		return fault.New(fault.ValidationError, "%s", beyondEnd("Last-Event-ID", req.GetLastSequence(), first.GetHead()))
	}
	next := in.Recv
	if resumed && first.GetEnded() {
		var some bool
		if first, next, some, err = withItems(first, next, modes); err != nil {
			return err
		}
		if !some {
			return out.SendHeader(metadata.Pairs(MetaStreaming, StreamOver))
		}
	}
	if err := out.SendHeader(metadata.Pairs(MetaStreaming, "1")); err != nil {
		return err
	}
	f := &follower{show: func(snapshot []byte) []byte {
		shown, _ := s.presentSnapshot(ctx, snapshot)
		return shown
	}, modes: modes, out: out, resumed: resumed, after: int(after)}
	if errors.Is(err, io.EOF) {
		return nil
	}
	defer f.sendNotices(ctx, s, req.GetRunId())()
	return f.run(ctx, first, next, time.Duration(req.GetBufferMs())*time.Millisecond)
}

// withItems reads the rest of an ended run up to its first item that the subscriber sees; some is
// false if there is none. The returned response and function return the same as the given ones, without the
// events before that item.
func withItems(
	first *eventlogv1.FollowResponse, recv func() (*eventlogv1.FollowResponse, error), modes runview.Modes,
) (_ *eventlogv1.FollowResponse, _ func() (*eventlogv1.FollowResponse, error), some bool, err error) {
	snapshot := first.GetInitialSnapshot()
	for res := first; ; {
		for i, e := range res.GetEvents() {
			if modes.Form(wire.EventType(e.GetType())) != runview.Hidden {
				return &eventlogv1.FollowResponse{
					Events: res.GetEvents()[i:], InitialSnapshot: snapshot, Head: first.GetHead(), Ended: true,
				}, recv, true, nil
			}
			if wire.EventType(e.GetType()).Terminal() {
				return nil, nil, false, nil
			}
		}
		if res, err = recv(); err != nil {
			return nil, nil, false, streamError(err)
		}
	}
}

// maxCursor is the largest cursor of the read model; no run has that many events.
const maxCursor = 1<<31 - 1

func checkStream(req *openwopv1.StreamRunEventsRequest) (runview.Modes, error) {
	modes, err := runview.ParseModes(req.GetStreamModes())
	if err != nil {
		return modes, err
	}
	if err := runview.CheckBuffer(req.GetBufferMs()); err != nil {
		return modes, err
	}
	if req.LastSequence != nil && req.GetLastSequence() < -1 {
		return modes, fault.InvalidHeader("Last-Event-ID", "want the sequence of an event: digits only")
	}
	return modes, nil
}

// follower converts a run's events for its subscriber.
type follower struct {
	modes runview.Modes
	// show converts a snapshot for the subscriber.
	show    func([]byte) []byte
	out     grpc.ServerStreamingServer[openwopv1.RunEventEnvelope]
	resumed bool
	after   int
	batch   runview.Batch
	sending sync.Mutex // serializes sends
}

func (f *follower) send(it runview.Item) error {
	return f.sendRaw(&openwopv1.RunEventEnvelope{
		Sequence: int64(it.Sequence), Event: it.Name, Data: &openwopv1.JsonDocument{Json: it.Data},
	})
}

// run forwards responses until the stream of events ends.
func (f *follower) run(ctx context.Context, first *eventlogv1.FollowResponse, recv func() (*eventlogv1.FollowResponse, error), buffer time.Duration) error {
	if f.modes.Snapshots() && f.resumed && len(first.GetInitialSnapshot()) > 0 {
		// A resumed stream of snapshots starts with the current one.
		if err := f.send(runview.Item{
			Sequence: f.after,
			Name:     runview.NameSnapshot,
			Data:     f.show(first.GetInitialSnapshot()),
		}); err != nil {
			return err
		}
	}
	if buffer == 0 {
		return f.direct(first, recv)
	}
	return f.buffered(ctx, first, recv, buffer)
}

func (f *follower) direct(res *eventlogv1.FollowResponse, recv func() (*eventlogv1.FollowResponse, error)) error {
	for {
		for _, e := range res.GetEvents() {
			if it, ok := f.item(e); ok {
				if err := f.send(it); err != nil {
					return err
				}
			}
			if wire.EventType(e.GetType()).Terminal() {
				return nil
			}
		}
		var err error
		if res, err = recv(); err != nil {
			return streamError(err)
		}
	}
}

func streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// item converts an event; ok is false if the subscriber does not see it.
func (f *follower) item(e *eventlogv1.Event) (runview.Item, bool) {
	it := runview.Item{Sequence: int(e.GetSequence()), Name: e.GetType(), Data: e.GetDocument()}
	switch f.modes.Form(wire.EventType(e.GetType())) {
	case runview.AsEvent:
		return it, true
	case runview.AsChunk:
		it.Name, it.Data = runview.NameChunk, payloadOf(e.GetDocument())
		return it, true
	case runview.AsValues:
		it.Name, it.Data = runview.NameSnapshot, f.show(e.GetSnapshot())
		return it, true
	default:
		return runview.Item{}, false
	}
}

// payloadOf returns the payload of an event document.
func payloadOf(doc []byte) []byte {
	var e struct {
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(doc, &e) != nil {
		return []byte("{}")
	}
	return e.Payload
}

// received is one response, or the end of the stream.
type received struct {
	res *eventlogv1.FollowResponse
	err error
}

// buffered sends events in batches.
func (f *follower) buffered(ctx context.Context, first *eventlogv1.FollowResponse, recv func() (*eventlogv1.FollowResponse, error), buffer time.Duration) error {
	in := make(chan received)
	go func() { // ends with ctx, which ends recv
		for {
			res, err := recv()
			select {
			case in <- received{res, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(buffer)
	defer timer.Stop()
	next := received{res: first}
	for {
		if next.err != nil {
			return errors.Join(f.flush(), streamError(next.err))
		}
		if done, err := f.collect(next.res, timer, buffer); done || err != nil {
			return err
		}
	wait:
		for {
			select {
			case next = <-in:
				break wait
			case <-timer.C:
				if err := f.flush(); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// collect adds a response's events to the batch; done reports the terminal event.
func (f *follower) collect(res *eventlogv1.FollowResponse, timer *time.Timer, buffer time.Duration) (done bool, err error) {
	for _, e := range res.GetEvents() {
		t := wire.EventType(e.GetType())
		urgent := false
		if it, ok := f.item(e); ok {
			if f.batch.Empty() {
				timer.Reset(buffer)
			}
			doc := it.Data
			if it.Name == runview.NameChunk { // a batch holds event documents
				doc = e.GetDocument()
			}
			urgent = f.batch.Add(it.Sequence, t, doc)
		}
		if urgent || t.Terminal() {
			if err := f.flush(); err != nil {
				return true, err
			}
		}
		if t.Terminal() {
			return true, nil
		}
	}
	return false, nil
}

func (f *follower) flush() error {
	if f.batch.Empty() {
		return nil
	}
	return f.send(f.batch.Flush())
}
