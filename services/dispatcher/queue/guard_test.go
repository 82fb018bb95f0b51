package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// saw shows a guard the queue each second: the waiting runs, and those handed out since the last time.
func saw(cfg queue.GuardConfig, looks ...[2]int) (*queue.Guard, *time.Time) {
	now := time.Unix(1000, 0)
	g := queue.NewGuard(cfg, func() time.Time { return now })
	var handed uint64
	for _, l := range looks {
		handed += uint64(l[1])
		g.Observe(runlog.Depth{Waiting: l[0], HandedOut: handed})
		now = now.Add(time.Second)
	}
	now = now.Add(-time.Second)
	return g, &now
}

func TestGuard_PredictsTheWaitFromTheRateOfTheQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		looks [][2]int
		want  time.Duration
	}{
		{"nothing was seen", nil, 0},
		{"none waits", [][2]int{{0, 0}, {0, 100}}, 0},
		{"200 wait, 40 a second go", [][2]int{{240, 0}, {200, 40}}, 5 * time.Second},
		{"over several looks", [][2]int{{100, 0}, {160, 20}, {200, 60}}, 5 * time.Second},
		{"none goes", [][2]int{{9, 0}, {9, 0}, {9, 0}, {9, 0}}, 3 * time.Second},
		{"the first look", [][2]int{{9, 0}}, 0},
	} {
		g, _ := saw(queue.GuardConfig{}, tt.looks...)
		require.Equal(t, tt.want, g.ExpectedWait(0), tt.name)
	}
}

// Old observations do not count for the rate.
func TestGuard_ForgetsOldRates(t *testing.T) {
	t.Parallel()
	looks := [][2]int{{1000, 0}, {1000, 5000}}
	for range 20 {
		looks = append(looks, [2]int{1000, 100})
	}
	g, _ := saw(queue.GuardConfig{}, looks...)
	require.Equal(t, 10*time.Second, g.ExpectedWait(0))
}

func TestGuard_RejectsRunsThatWouldWaitTooLong(t *testing.T) {
	t.Parallel()
	g, now := saw(queue.GuardConfig{MaxWait: time.Minute}, [2]int{2400, 0}, [2]int{2400, 40})
	leave, err := g.Enter(0)
	require.NoError(t, err, "exactly a minute")
	leave()
	*now = now.Add(time.Second)
	g.Observe(runlog.Depth{Waiting: 2600, HandedOut: 80})
	_, err = g.Enter(0)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	e, _ := fault.As(err)
	require.Equal(t, 3*time.Second, e.RetryAfter)
	*now = now.Add(time.Second)
	g.Observe(runlog.Depth{HandedOut: 2680})
	_, err = g.Enter(0)
	require.NoError(t, err, "the queue is empty")
}

func TestGuard_RejectsRunsWhileTheQueueStalls(t *testing.T) {
	t.Parallel()
	g, now := saw(queue.GuardConfig{MaxWait: time.Minute}, [2]int{1, 0})
	*now = now.Add(time.Minute)
	_, err := g.Enter(0)
	require.NoError(t, err)
	*now = now.Add(time.Second)
	_, err = g.Enter(0)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestGuard_BoundsStartsAtATime(t *testing.T) {
	t.Parallel()
	g, _ := saw(queue.GuardConfig{MaxStarts: 1})
	leave, err := g.Enter(0)
	require.NoError(t, err)
	_, err = g.Enter(0)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	leave()
	_, err = g.Enter(0)
	require.NoError(t, err)
}

func TestGuard_CountsWhatItRefuses(t *testing.T) {
	t.Parallel()
	g, _ := saw(queue.GuardConfig{MaxWait: time.Second}, [2]int{9, 0}, [2]int{9, 3})
	_, err := g.Enter(0)
	require.Error(t, err)
	collectors := g.Collectors()
	require.InDelta(t, 1, testutil.ToFloat64(collectors[0]), 0)
	require.InDelta(t, 3, testutil.ToFloat64(collectors[1]), 1e-6, "seconds")
}

func TestGuard_TakesAllWithoutABound(t *testing.T) {
	t.Parallel()
	g, _ := saw(queue.GuardConfig{}, [2]int{1_000_000, 0}, [2]int{1_000_000, 1})
	_, err := g.Enter(0)
	require.NoError(t, err)
}

// depthSource reports a depth, or fails.
type depthSource struct {
	runlog.Queue
	away atomic.Bool
}

func (q *depthSource) Depth(context.Context) (runlog.Depth, error) {
	if q.away.Load() {
		return runlog.Depth{}, errors.New("log away")
	}
	return runlog.Depth{Waiting: 7}, nil
}

func TestGuard_SamplesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, q := queue.NewGuard(queue.GuardConfig{}, time.Now), &depthSource{}
		q.away.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, q) }()
		<-time.After(3 * time.Second)
		synctest.Wait()
		require.Zero(t, g.ExpectedWait(0), "no depth was reported")
		q.away.Store(false)
		<-time.After(3500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 2500*time.Millisecond, g.ExpectedWait(0))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// Runs that left the queue and wait for a slot delay the starts of their own tenant only.
func TestGuard_CountsParkedRunsForTheirTenant(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	g := queue.NewGuard(queue.GuardConfig{MaxWait: time.Minute}, func() time.Time { return now })
	for i := range 3 {
		g.Observe(runlog.Depth{Waiting: 1000, Parked: 1000, Limited: 500, HandedOut: uint64(10 * i)}) // ten a second
		now = now.Add(time.Second)
	}
	require.Equal(t, 100*time.Second, g.ExpectedWait(1000).Round(time.Second))
	_, err := g.Enter(1000)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.Zero(t, g.ExpectedWait(0))
	leave, err := g.Enter(0)
	require.NoError(t, err)
	leave()
}

func TestIsUndelivered_UntilASampleHasTheDelivery(t *testing.T) {
	t.Parallel()
	g := queue.NewGuard(queue.GuardConfig{}, time.Now)
	require.True(t, g.IsUndelivered(1), "nothing is known yet")
	g.Observe(runlog.Depth{Delivered: 7})
	require.False(t, g.IsUndelivered(7))
	require.True(t, g.IsUndelivered(8))
}
