package eventlog_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func TestReadEvents_GivesTheEventsAfterTheCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(logtest.RunStarted)
	for i := range 5 {
		w.Step(logtest.Node(fmt.Sprint("n", i))...)
	}
	w.Wake()
	w.End(logtest.RunCompleted) // events 0 to 11
	for _, tt := range []struct{ after, limit, from, count int32 }{
		{-1, 0, 0, 12},
		{-5, 0, 0, 12},
		{0, 0, 1, 11},
		{3, 2, 4, 2},
		{4, 3, 5, 3},
		{10, 9, 11, 1},
		{11, 0, 0, 0},
		{500, 0, 0, 0},
	} {
		got := r.read(t, "run-1", tt.after, tt.limit)
		require.Equal(t, "completed", got.GetStatus())
		require.Equal(t, int32(11), got.GetHead())
		require.Len(t, got.GetEvents(), int(tt.count), "after %d limit %d", tt.after, tt.limit)
		if tt.count > 0 {
			require.Equal(t, w.Docs(int(tt.from))[:tt.count], docs(t, w, got.GetEvents()))
		}
	}
	require.Equal(t, r.read(t, "run-1", 2, 4), r.read(t, "run-1", 2, 4), "repeated reads are identical")
}

func TestReadEvents_PagesThroughALongRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	for i := range 700 {
		w.Step(logtest.Node(fmt.Sprint("n", i))...)
	}
	for _, limit := range []int32{0, 1, 333, 5000, 100_000} {
		var got []string
		after := int32(-1)
		for after < 1399 && len(got) < 50 || limit != 1 && after < 1399 {
			page := r.read(t, "run-1", after, limit)
			require.NotEmpty(t, page.GetEvents())
			got = append(got, docs(t, w, page.GetEvents())...)
			after = page.GetEvents()[len(page.GetEvents())-1].GetSequence()
		}
		require.Equal(t, w.Docs(0)[:len(got)], got)
	}
	require.Len(t, r.read(t, "run-1", -1, 0).GetEvents(), 1000)
	require.Len(t, r.read(t, "run-1", -1, 100_000).GetEvents(), 1400)
}

func TestReadEvents_SplitsAPageOfLargeEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	big := string(bytes.Repeat([]byte("x"), 1<<20))
	for range 12 {
		w.Step(logtest.Log(big))
	}
	seen := int32(-1)
	for seen < 11 {
		page := r.read(t, "run-1", seen, 0)
		require.NotEmpty(t, page.GetEvents())
		require.Less(t, len(page.GetEvents()), 12, "a page stays far below the largest message")
		seen += int32(len(page.GetEvents()))
		require.Equal(t, seen, page.GetEvents()[len(page.GetEvents())-1].GetSequence())
	}
}

// waiting reads events after a sequence with a long wait.
func waiting(t *testing.T, r *rig, after int32, wait time.Duration) (*eventlogv1.ReadEventsResponse, error) {
	t.Helper()
	return r.ReadEvents(within(t), &eventlogv1.ReadEventsRequest{
		Tenant: logtest.Tenant, RunId: "run-1", After: after, WaitMs: int32(wait.Milliseconds()),
	})
}

// OpenWOP host contract §4.7: return at once when there is nothing to wait for.
func TestReadEvents_DoesNotWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		write  func(w *logtest.Writer)
		after  int32
		status wire.Status
		events int
	}{
		{"when events are there", func(w *logtest.Writer) { w.Step(logtest.RunStarted) }, -1, wire.StatusRunning, 1},
		{
			"when the run has ended",
			func(w *logtest.Writer) { w.End(logtest.RunStarted, logtest.RunCompleted) },
			1, wire.StatusCompleted, 0,
		},
		{
			"when the run is paused",
			func(w *logtest.Writer) { w.Step(logtest.RunStarted, logtest.RunPaused) },
			1, wire.StatusPaused, 0,
		},
		{"beyond the head", func(w *logtest.Writer) { w.Step(logtest.RunStarted) }, 1, wire.StatusRunning, 0},
		{"beyond the head of a run without events", func(*logtest.Writer) {}, 0, wire.StatusPending, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tt.write(r.begin(t, "run-1"))
			began := time.Now()
			got, err := waiting(t, r, tt.after, time.Minute)
			require.NoError(t, err)
			require.Less(t, time.Since(began), 10*time.Second)
			require.Len(t, got.GetEvents(), tt.events)
			require.Equal(t, string(tt.status), got.GetStatus())
		})
	}
}

func TestReadEvents_WaitsForNews(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	for after, write := range []func(){
		func() { w.Step(logtest.RunStarted) },
		func() { w.Wake(); w.Step(logtest.Log("m")) }, // an empty frame is no news
		func() { w.End(logtest.RunCompleted) },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err := waiting(t, r, int32(after)-1, time.Minute)
			if err != nil || len(got.GetEvents()) != 1 {
				t.Errorf("after %d: %v %v", after-1, got, err)
			}
		}()
		r.followed(t, 1)
		write()
		<-done
	}
}

// followed waits until so many streams and waiting reads are open.
func (r *rig) followed(t testing.TB, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return r.svc.Followers() == n }, patience, time.Millisecond)
}

func TestReadEvents_ReturnsEmptyWhenTheWaitIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(logtest.RunStarted)
	got, err := waiting(t, r, 0, 30*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, got.GetEvents())
	require.Equal(t, "running", got.GetStatus())
	require.Zero(t, got.GetHead())
	r.followed(t, 0)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = r.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{Tenant: logtest.Tenant, RunId: "run-1", WaitMs: 60_000})
	require.NoError(t, err, "the answer comes before the caller's deadline")
}

func TestReadEvents_EndsWithItsCallerAndWithTheService(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(t, "run-1")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := r.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{
			Tenant: logtest.Tenant,
			RunId:  "run-1",
			After:  -1,
			WaitMs: 60_000,
		})
		gone <- err
	}()
	r.followed(t, 1)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	r.followed(t, 0)

	stopped := make(chan error, 1)
	go func() { _, err := waiting(t, r, -1, time.Minute); stopped <- err }()
	r.followed(t, 1)
	r.stop()
	require.NoError(t, <-stopped, "an empty page: the caller asks again")
}
