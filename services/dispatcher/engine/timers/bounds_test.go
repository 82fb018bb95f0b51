package timers_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
)

// Timers of days are in the read model only, and fire on time all the same.
func TestSchedule_LeavesFarTimersToTheSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		watch := newWatch("d-0", 2*time.Second, w, process{w, "d-0"})
		due := time.Now().Add(2 * time.Hour)
		watch.Schedule(run("near"), head(1), time.Now().Add(59*time.Minute))
		w.add("near", time.Now().Add(59*time.Minute))
		watch.Schedule(run("far"), head(1), due)
		w.add("far", due)
		watch.Schedule(run("moved"), head(1), time.Now().Add(time.Minute))
		watch.Schedule(run("moved"), head(2), due)
		w.add("moved", due)
		require.Equal(t, 1, watch.Count())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour+time.Second)
		defer cancel()
		require.ErrorIs(t, watch.Run(ctx), context.DeadlineExceeded)
		w.late(t, 500*time.Millisecond)
	})
}

// The memory of timers has a limit in count, and by it in bytes.
func TestSchedule_BoundsItsMemory(t *testing.T) {
	w := newWatch("d-0", time.Hour, index(nil), &waker{})
	now := time.Now()
	before := heapSize()
	for n := range 200_000 {
		w.Schedule(subject.Run{
			Tenant:     strings.Repeat("t", 32),
			WorkflowID: fmt.Sprintf("workflow-%060d", n),
			RunID:      fmt.Sprintf("run_%026d", n),
		}, frame.Head{Pos: uint64(n), Hash: fmt.Sprintf("%064d", n)}, now.Add(50*time.Minute))
	}
	require.Equal(t, 50_000, w.Count())
	require.Less(t, heapSize()-before, 40<<20)
}

func heapSize() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The wall clock jumps, and the monotonic clock does not: the machine was suspended.
func TestRun_FiresSoonAfterTheClockWasSetForward(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead, readings atomic.Int64
		clock := func() time.Time {
			readings.Add(1)
			return time.Now().Add(time.Duration(ahead.Load())).Round(0)
		}
		wk := &waker{began: time.Now()}
		w := timers.New(timers.Config{SweepEvery: time.Hour, Process: func() string { return "d-0" }},
			index(nil), clock, slog.New(slog.DiscardHandler))
		w.Bind(wk)
		w.Schedule(run("a"), head(1), clock().Add(30*time.Minute))
		time.AfterFunc(time.Minute, func() { ahead.Store(int64(29 * time.Minute)) })
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		require.ErrorIs(t, w.Run(ctx), context.DeadlineExceeded)
		require.Len(t, wk.woken, 1)
		require.Regexp(t, `^a@1 after 1m[0-2]`, wk.woken[0])
		require.Less(t, readings.Load(), int64(100), "no busy loop")
	})
}
