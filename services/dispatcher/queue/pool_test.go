package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// fakeSource returns the deliveries and errors that are put into it, once each.
type fakeSource struct {
	in    chan error
	asked atomic.Int32
}

func (q *fakeSource) Next(ctx context.Context) (runlog.Delivery, error) {
	q.asked.Add(1)
	select {
	case err := <-q.in:
		return delivery{}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *fakeSource) Depth(context.Context) (runlog.Depth, error) { return runlog.Depth{}, nil }

func (q *fakeSource) Want(int) {}

func (q *fakeSource) Close() {}

type delivery struct{ runlog.Delivery }

func (delivery) Frame() *frame.Frame { return &frame.Frame{} }

// executor holds every run until it is released.
type executor struct {
	mu    sync.Mutex
	busy  int
	most  int
	done  int
	letGo chan struct{}
}

func (e *executor) Execute(ctx context.Context, _ runlog.Delivery) {
	e.count(1)
	select {
	case <-e.letGo:
	case <-ctx.Done():
	}
	e.count(-1)
}

func (e *executor) count(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy += n
	e.most = max(e.most, e.busy)
	if n < 0 {
		e.done++
	}
}

func TestPool_TakesAsManyRunsAsItHasSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSource{in: make(chan error, 10)}
		for range 10 {
			q.in <- nil
		}
		e := &executor{letGo: make(chan struct{})}
		p := queue.NewPool(q, e, 3, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		require.Equal(t, 3, e.busy)
		require.Equal(t, 3, p.Busy())
		require.EqualValues(t, 3, q.asked.Load(), "no run is handed out that would have to wait")
		for range 10 {
			e.letGo <- struct{}{}
		}
		synctest.Wait()
		require.Equal(t, 10, e.done)
		require.Equal(t, 3, e.most)
		require.Equal(t, 1, p.Busy(), "the slot of the next run")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestPool_WaitsForItsRunsWhenItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSource{in: make(chan error, 2)}
		q.in <- nil
		q.in <- nil
		e := &executor{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- queue.NewPool(q, e, 8, slog.New(slog.DiscardHandler)).Run(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, 2, e.done, "they see their context ended, and are through when Run returns")
	})
}

func TestPool_ReadsOnAfterTheQueueFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSource{in: make(chan error, 3)}
		q.in <- errors.New("log away")
		q.in <- errors.New("still away")
		q.in <- nil
		e := &executor{letGo: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- queue.NewPool(q, e, 1, slog.New(slog.DiscardHandler)).Run(ctx) }()
		e.letGo <- struct{}{}
		require.Positive(t, time.Since(began), "with a pause, and not in a busy loop")
		synctest.Wait()
		require.Equal(t, 1, e.done)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// panicking panics on every run.
type panicking struct{ runs chan struct{} }

func (p panicking) Execute(context.Context, runlog.Delivery) {
	p.runs <- struct{}{}
	panic("boom")
}

func TestRun_APanicFreesItsSlotAndLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, e := &fakeSource{in: make(chan error, 3)}, panicking{make(chan struct{}, 3)}
		for range 3 {
			q.in <- nil
		}
		p := queue.NewPool(q, e, 1, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		require.Len(t, e.runs, 3)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}
