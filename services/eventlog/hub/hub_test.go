package hub_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = store.Key{Tenant: logtest.Tenant, RunID: "run-1"}

// frames are the frames of a run of n+1 steps, its start first.
func frames(t *testing.T, runID string, n int) []*frame.Frame {
	t.Helper()
	log := memory.New()
	w := logtest.Begin(t, log, logtest.Record(runID))
	w.Step(logtest.RunStarted, logtest.Log("a, \"b\""))
	for range n {
		w.Step(logtest.Log("m"))
	}
	return log.Frames()
}

func next(t *testing.T, s *hub.Subscription) ([]*hub.Frame, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.Next(ctx)
}

// silent checks that nothing is queued.
func silent(t *testing.T, s *hub.Subscription) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 { // Next may choose either of two ready cases
		got, err := s.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, got)
	}
}

func TestPublish_ReachesFollowersOfTheRun(t *testing.T) {
	t.Parallel()
	h := hub.New(8)
	a, b, other := h.Subscribe(key), h.Subscribe(key), h.Subscribe(store.Key{Tenant: logtest.Tenant, RunID: "run-2"})
	foreign := h.Subscribe(store.Key{Tenant: "other", RunID: "run-1"})
	all := frames(t, "run-1", 1)
	h.Publish(all)
	for _, s := range []*hub.Subscription{a, b} {
		got, err := next(t, s)
		require.NoError(t, err)
		require.Len(t, got, 2, "the start frame has no events")
		require.Equal(t, all[1].Types, got[0].Types)
		require.Equal(t, 0, got[0].First)
		require.Equal(t, 1, got[0].Last)
		require.Equal(t, string(all[1].Body), "["+string(got[0].Docs[0])+","+string(got[0].Docs[1])+"]")
		require.Equal(t, 2, got[1].First)
	}
	for _, s := range []*hub.Subscription{other, foreign} {
		silent(t, s)
	}
}

func TestNext_WaitsForTheNextFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(8)
		s := h.Subscribe(key)
		got := make(chan int)
		go func() {
			for {
				frames, err := s.Next(context.Background())
				if err != nil {
					close(got)
					return
				}
				got <- len(frames)
			}
		}()
		all := frames(t, "run-1", 3)
		for _, f := range all[1:] {
			synctest.Wait()
			h.Publish([]*frame.Frame{f})
			require.Equal(t, 1, <-got)
		}
		s.Close()
		_, open := <-got
		require.False(t, open)
	})
}

func TestPublish_NeverWaitsForASlowFollower(t *testing.T) {
	t.Parallel()
	h := hub.New(2)
	slow, fast := h.Subscribe(key), h.Subscribe(key)
	for _, f := range frames(t, "run-1", 5)[1:] {
		h.Publish([]*frame.Frame{f})
		_, err := next(t, fast)
		require.NoError(t, err)
	}
	_, err := next(t, slow)
	require.ErrorIs(t, err, hub.ErrLagged)
	silent(t, slow)
	require.Equal(t, int64(1), h.Lags())

	h.Publish(frames(t, "run-1", 0))
	got, err := next(t, slow)
	require.NoError(t, err, "it keeps up again")
	require.Len(t, got, 1)
}

// A follower that does not read keeps little of its run in memory, however few frames that are.
func TestPublish_LimitsTheBytesOfAQueue(t *testing.T) {
	t.Parallel()
	h := hub.New(256)
	log := memory.New()
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	w.Step(logtest.Log(strings.Repeat("x", 2<<20)))
	for range 3 {
		w.Step(logtest.Log(strings.Repeat("x", 400<<10)))
	}
	all := log.Frames()[1:]
	s := h.Subscribe(key)
	h.Publish(all[:1])
	got, err := next(t, s)
	require.NoError(t, err, "a large frame alone")
	require.Len(t, got, 1)
	h.Publish(all[1:3])
	got, err = next(t, s)
	require.NoError(t, err)
	require.Len(t, got, 2)
	h.Publish(all[1:])
	_, err = next(t, s)
	require.ErrorIs(t, err, hub.ErrLagged)
	require.Equal(t, int64(1), h.Lags())
}

func TestTouch_SendsFollowersToTheStore(t *testing.T) {
	t.Parallel()
	h := hub.New(8)
	s := h.Subscribe(key)
	h.Touch(key)
	_, err := next(t, s)
	require.ErrorIs(t, err, hub.ErrLagged)
	h.Touch(store.Key{Tenant: "other", RunID: "follows"})
	silent(t, s)
	h.TouchAll()
	_, err = next(t, s)
	require.ErrorIs(t, err, hub.ErrLagged)
}

func TestPublish_OfAFrameThatDoesNotSplitSendsToTheStore(t *testing.T) {
	t.Parallel()
	h := hub.New(8)
	s := h.Subscribe(key)
	for _, body := range []string{`{}`, `[1,2,3]`} {
		f := *frames(t, "run-1", 0)[1]
		f.Body = []byte(body)
		h.Publish([]*frame.Frame{&f})
		_, err := next(t, s)
		require.ErrorIs(t, err, hub.ErrLagged)
	}
}

func TestClose_EndsSubscriptions(t *testing.T) {
	t.Parallel()
	h := hub.New(8)
	s := h.Subscribe(key)
	require.Equal(t, int64(1), h.Subscriptions())
	h.Publish(frames(t, "run-1", 0))
	s.Close()
	s.Close()
	require.Zero(t, h.Subscriptions())
	for range 2 {
		_, err := next(t, s)
		require.ErrorIs(t, err, hub.ErrClosed)
	}

	before := h.Subscribe(key)
	h.Close()
	h.Close()
	later := h.Subscribe(key)
	for _, s := range []*hub.Subscription{before, later} {
		_, err := next(t, s)
		require.ErrorIs(t, err, hub.ErrClosed)
		s.Close()
	}
	h.Publish(frames(t, "run-1", 0))
}

func TestHub_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	h := hub.New(4)
	all := frames(t, "run-1", 50)
	var wg sync.WaitGroup
	for range 8 {
		s := h.Subscribe(key)
		wg.Go(func() {
			defer s.Close()
			last := -1
			for last < all[len(all)-1].Last {
				got, err := next(t, s)
				if err == hub.ErrLagged {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range got {
					if f.First != last+1 {
						t.Errorf("frame %d follows event %d", f.First, last)
					}
					last = f.Last
				}
			}
		})
	}
	for _, f := range all {
		h.Publish([]*frame.Frame{f})
	}
	wg.Wait()
	require.Zero(t, h.Subscriptions())
	require.Equal(t, key, project.Key(all[0].Run))
}
