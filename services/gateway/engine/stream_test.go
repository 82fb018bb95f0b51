package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

// subscriber is the server's end of a stream: it keeps what it was sent.
type subscriber struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // what a server stream is
	mu      sync.Mutex      // guards the rest
	header  metadata.MD
	items   []*openwopv1.RunEventEnvelope
	refuses error
}

func (s *subscriber) Context() context.Context { return s.ctx }

func (s *subscriber) SendHeader(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = md
	return nil
}

func (s *subscriber) Send(e *openwopv1.RunEventEnvelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, e)
	return s.refuses
}

func (s *subscriber) accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.header.Get(engine.MetaStreaming)) > 0
}

// shown is what the subscriber got, one "sequence name data" per line.
func (s *subscriber) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.items {
		out = append(out, fmt.Sprintf("%d %s %s", e.GetSequence(), e.GetEvent(), e.GetData().GetJson()))
	}
	return strings.Join(out, "\n")
}

// event is an event whose document, payload and snapshot contain its sequence.
func event(n int32, typ string) *eventlogv1.Event {
	return &eventlogv1.Event{
		Sequence: n, Type: typ,
		Document: fmt.Appendf(nil, `{"e":%d,"payload":{"p":%d}}`, n, n), Snapshot: fmt.Appendf(nil, `{"s":%d}`, n),
	}
}

func batch(list ...*eventlogv1.Event) *eventlogv1.FollowResponse {
	return &eventlogv1.FollowResponse{Events: list}
}

// aRun is a short run with a chunk.
func aRun() []*eventlogv1.FollowResponse {
	return []*eventlogv1.FollowResponse{
		batch(event(0, "run.started"), event(1, "node.started")),
		batch(),
		batch(event(2, "output.chunk"), event(3, "node.completed"), event(4, "run.completed")),
	}
}

// follow runs a stream of a feed to its end.
func (r *rig) followed(t *testing.T, f *feed, req *openwopv1.StreamRunEventsRequest) (*subscriber, error) {
	t.Helper()
	r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
	sub := &subscriber{ctx: as(t, liveKey)}
	if req.RunId == "" {
		req.RunId = "run_1"
	}
	return sub, r.StreamRunEvents(req, sub)
}

func TestStream_ShowsEachModeItsViewAndEndsWithTheRun(t *testing.T) {
	t.Parallel()
	const (
		e0, e1 = `0 run.started {"e":0,"payload":{"p":0}}`, `1 node.started {"e":1,"payload":{"p":1}}`
		e2, c2 = `2 output.chunk {"e":2,"payload":{"p":2}}`, `2 ai.message.chunk {"p":2}`
		e3, e4 = `3 node.completed {"e":3,"payload":{"p":3}}`, `4 run.completed {"e":4,"payload":{"p":4}}`
	)
	cases := map[string][]string{
		"":                       {e0, e3, e4},
		"updates":                {e0, e3, e4},
		"messages":               {c2},
		"debug":                  {e0, e1, e2, e3, e4},
		"updates,messages":       {e0, c2, e3, e4},
		"messages,debug":         {e0, e1, c2, e3, e4},
		"debug,updates,messages": {e0, e1, c2, e3, e4},
		"values": {
			`0 state.snapshot {"s":0}`, `1 state.snapshot {"s":1}`, `3 state.snapshot {"s":3}`,
			`4 state.snapshot {"s":4}`,
		},
	}
	for mode, want := range cases {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			req := &openwopv1.StreamRunEventsRequest{}
			if mode != "" {
				req.StreamModes = []string{mode}
			}
			sub, err := r.followed(t, open(aRun()...), req) // the feed stays open: the terminal event ends it
			require.NoError(t, err)
			require.Equal(t, strings.Join(want, "\n"), sub.shown())
			require.True(t, sub.accepted())
			require.Equal(t, mode == "values", r.log.follows[0].GetSnapshots(), "states are computed for those who see them")
			require.Equal(t, "acme", r.log.follows[0].GetTenant())
			require.Equal(t, int32(-1), r.log.follows[0].GetAfter())
		})
	}
}

func TestStream_ResumesAfterTheCursor(t *testing.T) {
	t.Parallel()
	for cursor, want := range map[int64]int32{
		-1:        -1,
		0:         0,
		7:         7,
		1<<31 - 1: 1<<31 - 1,
		1 << 40:   1<<31 - 1,
		1<<63 - 1: 1<<31 - 1,
	} {
		r := newRig(t)
		_, err := r.followed(t, ended(), &openwopv1.StreamRunEventsRequest{LastSequence: proto.Int64(cursor)})
		require.NoError(t, err)
		require.Equal(t, want, r.log.follows[0].GetAfter(), cursor)
	}
}

func TestStream_OfStatesBeginsWithTheStateOnResumption(t *testing.T) {
	t.Parallel()
	start := &eventlogv1.FollowResponse{InitialSnapshot: []byte(`{"now":1}`), Head: 3}
	cases := []struct {
		name, mode string
		cursor     *int64
		want       string
	}{
		{"resumed", "values", proto.Int64(3), "3 state.snapshot {\"now\":1}\n4 state.snapshot {\"s\":4}"},
		{"from the start", "values", nil, `4 state.snapshot {"s":4}`},
		{"from the start, said so", "values", proto.Int64(-1), `4 state.snapshot {"s":4}`},
		{"events", "updates", proto.Int64(3), `4 run.completed {"e":4,"payload":{"p":4}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sub, err := newRig(t).followed(t, open(start, batch(event(4, "run.completed"))), &openwopv1.StreamRunEventsRequest{
				StreamModes:  []string{c.mode},
				LastSequence: c.cursor,
			})
			require.NoError(t, err)
			require.Equal(t, c.want, sub.shown())
		})
	}
}

// A reader with everything of an ended run gets nothing more, so that it need not come back.
func TestStream_IsOverForReadersOfEndedRunsWithEverything(t *testing.T) {
	t.Parallel()
	backlog := func(list ...*eventlogv1.Event) *eventlogv1.FollowResponse {
		return &eventlogv1.FollowResponse{Events: list, Head: 4, Ended: true, InitialSnapshot: []byte(`{"now":1}`)}
	}
	chunk, done, end := event(2, "output.chunk"), event(3, "node.completed"), event(4, "run.completed")
	for _, tc := range []struct {
		name, mode string
		cursor     *int64
		feed       []*eventlogv1.FollowResponse
		over       bool
		want       string
	}{
		{"all events", "updates", proto.Int64(4), []*eventlogv1.FollowResponse{backlog()}, true, ""},
		{"all states", "values", proto.Int64(4), []*eventlogv1.FollowResponse{backlog()}, true, ""},
		{"all chunks", "messages", proto.Int64(2), []*eventlogv1.FollowResponse{backlog(done), batch(end)}, true, ""},
		{"a chunk is left", "messages", proto.Int64(1), []*eventlogv1.FollowResponse{backlog(), batch(chunk, done, end)}, false, `2 ai.message.chunk {"p":2}`},
		{"the end is left", "updates", proto.Int64(2), []*eventlogv1.FollowResponse{backlog(event(2, "log.appended")), batch(end)}, false, `4 run.completed {"e":4,"payload":{"p":4}}`},
		{"a state is left", "values", proto.Int64(3), []*eventlogv1.FollowResponse{backlog(end)}, false, "3 state.snapshot {\"now\":1}\n4 state.snapshot {\"s\":4}"},
		{"not resumed", "messages", nil, []*eventlogv1.FollowResponse{backlog(done, end)}, false, ""},
		{"the run goes on", "updates", proto.Int64(4), []*eventlogv1.FollowResponse{{Head: 4}}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sub, err := newRig(t).followed(t, ended(tc.feed...), &openwopv1.StreamRunEventsRequest{StreamModes: []string{tc.mode}, LastSequence: tc.cursor})
			require.NoError(t, err)
			want := "1"
			if tc.over {
				want = engine.StreamOver
			}
			require.Equal(t, []string{want}, sub.header.Get(engine.MetaStreaming))
			require.Equal(t, tc.want, sub.shown())
		})
	}
}

func TestStream_RejectsACursorBeyondTheEnd(t *testing.T) {
	t.Parallel()
	for _, cursor := range []int64{4, 1000, 1 << 40} {
		for _, first := range []*eventlogv1.FollowResponse{{Head: 3}, {Head: 3, Ended: true}} {
			sub, err := newRig(t).followed(t, ended(first), &openwopv1.StreamRunEventsRequest{LastSequence: proto.Int64(cursor)})
			require.Equal(t, fault.ValidationError, fault.CodeOf(err))
			require.ErrorContains(t, err, fmt.Sprintf("Last-Event-ID %d is beyond the run's last event, 3", cursor))
			require.False(t, sub.accepted())
		}
	}
}

func TestStream_FindsTheRunBeforeItChecksParameters(t *testing.T) {
	t.Parallel()
	bad := map[fault.Code]*openwopv1.StreamRunEventsRequest{
		fault.UnsupportedStreamMode: {StreamModes: []string{"bogus"}, BufferMs: -1, LastSequence: proto.Int64(-5)},
		fault.ValidationError:       {BufferMs: 5001, LastSequence: proto.Int64(-5)},
	}
	for code, req := range bad {
		sub, err := newRig(t).followed(t, failed(fault.New(fault.RunNotFound, "no")), req)
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
		require.False(t, sub.accepted())

		sub, err = newRig(t).followed(t, open(aRun()...), req)
		require.Equal(t, code, fault.CodeOf(err))
		require.False(t, sub.accepted(), "a refusal is not a stream")
		require.Empty(t, sub.shown())
	}
	_, err := newRig(t).followed(t, open(aRun()...), &openwopv1.StreamRunEventsRequest{LastSequence: proto.Int64(-2)})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	for _, id := range badIDs[1:] {
		r := newRig(t)
		_, err := r.followed(t, open(), &openwopv1.StreamRunEventsRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
		require.Empty(t, r.log.follows)
	}
}

func TestStream_EndsAsItsSourceEnds(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, buffer := range []int32{0, 100} {
		sub, err := newRig(t).followed(t, ended(batch(event(0, "run.started"))), &openwopv1.StreamRunEventsRequest{BufferMs: buffer})
		require.NoError(t, err)
		require.NotEmpty(t, sub.shown(), "what was held is flushed")

		_, err = newRig(t).followed(t, failed(boom, batch(event(0, "run.started"))), &openwopv1.StreamRunEventsRequest{BufferMs: buffer})
		require.ErrorIs(t, err, boom)

		sub, err = newRig(t).followed(t, ended(), &openwopv1.StreamRunEventsRequest{BufferMs: buffer})
		require.NoError(t, err)
		require.True(t, sub.accepted(), "nothing to show is a stream, too")
	}
}

func TestStream_StopsWhenTheSubscriberIsGone(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for _, req := range []*openwopv1.StreamRunEventsRequest{{}, {BufferMs: 100}} {
		r := newRig(t)
		f := open(aRun()...)
		r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
		req.RunId = "run_1"
		err := r.StreamRunEvents(req, &subscriber{ctx: as(t, liveKey), refuses: gone})
		require.ErrorIs(t, err, gone)
		require.ErrorIs(t, f.ctx.Err(), context.Canceled, "the source is let go")
	}
}

func TestStream_CancellingEndsItAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, buffer := range []int32{0, 5000} {
		r := newRig(t)
		f := open(batch(event(0, "run.started")))
		r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
		ctx, cancel := context.WithCancel(as(t, liveKey))
		done := make(chan error, 1)
		go func() {
			done <- r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{RunId: "run_1", BufferMs: buffer}, &subscriber{ctx: ctx})
		}()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Empty(t, r.dispatcher.cancels, "the run goes on")
	}
}

func TestStream_RejectsMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return open(batch()) }
		ctx, cancel := context.WithCancel(as(t, liveKey))
		done := make(chan error, maxStreams)
		for range maxStreams {
			go func() {
				done <- r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{RunId: "run_1"}, &subscriber{ctx: ctx})
			}()
		}
		synctest.Wait()
		err := r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{RunId: "run_1"}, &subscriber{ctx: ctx})
		e, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, fault.RateLimited, e.Code)
		require.Equal(t, "global", e.Details["scope"])
		require.Equal(t, e.RetryAfter.Milliseconds(), e.Details["retryAfterMs"])
		require.Positive(t, e.RetryAfter)
		cancel()
		for range maxStreams {
			require.ErrorIs(t, <-done, context.Canceled)
		}
		_, err = r.followed(t, ended(), &openwopv1.StreamRunEventsRequest{})
		require.NoError(t, err, "places are given back")
	})
}

// buffered runs a stream with bufferMs=1000 in a bubble of synthetic time.
func buffered(t *testing.T, modes []string, body func(f *feed, sub *subscriber, done chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f := open()
		r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return f }
		ctx, cancel := context.WithCancel(as(t, liveKey))
		defer cancel()
		sub, done := &subscriber{ctx: ctx}, make(chan error, 1)
		go func() {
			done <- r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{RunId: "run_1", BufferMs: 1000, StreamModes: modes}, sub)
		}()
		body(f, sub, done)
		cancel()
		synctest.Wait()
	})
}

func TestStream_BufferHoldsEventsUntilTheTimer(t *testing.T) {
	t.Parallel()
	buffered(t, nil, func(f *feed, sub *subscriber, _ chan error) {
		f.in <- batch(event(0, "run.started"), event(1, "node.started"))
		time.Sleep(600 * time.Millisecond)
		f.in <- batch(event(2, "node.completed"))
		synctest.Wait()
		require.Empty(t, sub.shown(), "not yet")
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		want := `2 batch [{"e":0,"payload":{"p":0}},{"e":2,"payload":{"p":2}}]`
		require.Equal(t, want, sub.shown(), "counted from the first event in the batch")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, want, sub.shown(), "no empty batches")
		f.in <- batch(event(3, "node.completed"))
		time.Sleep(1000 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, want+"\n3 batch [{\"e\":3,\"payload\":{\"p\":3}}]", sub.shown())
	})
}

func TestStream_BufferIsFlushedWhenTheRunEndsOrWaits(t *testing.T) {
	t.Parallel()
	buffered(t, nil, func(f *feed, sub *subscriber, done chan error) {
		began := time.Now()
		f.in <- batch(event(0, "run.started"), event(1, "node.suspended"))
		synctest.Wait()
		require.Equal(t, `1 batch [{"e":0,"payload":{"p":0}},{"e":1,"payload":{"p":1}}]`, sub.shown())
		f.in <- batch(event(2, "node.completed"), event(3, "run.failed"))
		require.NoError(t, <-done)
		require.Contains(t, sub.shown(), "\n"+`3 batch [{"e":2,"payload":{"p":2}},{"e":3,"payload":{"p":3}}]`)
		require.Zero(t, time.Since(began), "nothing waited for the timer")
	})
}

func TestStream_BufferEndsAtATerminalEventItDoesNotShow(t *testing.T) {
	t.Parallel()
	buffered(t, []string{"messages"}, func(f *feed, sub *subscriber, done chan error) {
		f.in <- batch(event(0, "run.started"), event(1, "output.chunk"), event(2, "run.completed"))
		require.NoError(t, <-done)
		require.Equal(t, `1 batch [{"e":1,"payload":{"p":1}}]`, sub.shown(), "a batch holds event documents")
	})
}

func TestStream_BufferOfStatesHoldsStates(t *testing.T) {
	t.Parallel()
	buffered(t, []string{"values"}, func(f *feed, sub *subscriber, done chan error) {
		f.in <- batch(event(0, "run.started"), event(1, "node.started"), event(2, "run.cancelled"))
		require.NoError(t, <-done)
		require.Equal(t, `2 batch [{"s":0},{"s":1},{"s":2}]`, sub.shown())
	})
}

func BenchmarkStream(b *testing.B) {
	r := newRig(b)
	var list []*eventlogv1.Event
	for i := range int32(63) {
		list = append(list, event(i, "node.completed"))
	}
	all := batch(append(list, event(63, "run.completed"))...)
	r.log.follow = func(context.Context, *eventlogv1.FollowRequest) *feed { return open(all) }
	ctx := as(b, liveKey)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.StreamRunEvents(&openwopv1.StreamRunEventsRequest{RunId: "run_1"}, &subscriber{ctx: ctx}); err != nil {
			b.Fatal(err)
		}
	}
}
