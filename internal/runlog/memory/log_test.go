package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/internal/runlog/runlogtest"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLog_KeepsTheContract(t *testing.T) {
	t.Parallel()
	runlogtest.Run(t, func(*testing.T) runlogtest.Full { return memory.New() })
}

var testRun = subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "run-1"}

func start() *frame.Frame { return frame.NewStart(testRun, []byte(`{"runId":"run-1"}`)) }

// appendStart stores the start frame of the test run.
func appendStart(t *testing.T, l *memory.Log) *frame.Frame {
	t.Helper()
	f := start()
	pos, err := l.Append(t.Context(), f, 0)
	require.NoError(t, err)
	f.Pos = pos
	return f
}

func TestFailNext_FailsOnceAndStoresNothing(t *testing.T) {
	t.Parallel()
	l := memory.New()
	boom := errors.New("boom")
	l.FailNext(boom)
	l.FailNext(runlog.ErrUnavailable)
	_, err := l.Append(t.Context(), start(), 0)
	require.ErrorIs(t, err, boom)
	_, err = l.Append(t.Context(), start(), 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.Empty(t, l.Frames())
	appendStart(t, l)
	require.Len(t, l.Frames(), 1)
}

func TestLoseNextAck_StoresAndARetrySettles(t *testing.T) {
	t.Parallel()
	l := memory.New()
	l.LoseNextAck()
	_, err := l.Append(t.Context(), start(), 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	pos, err := l.Append(t.Context(), start(), 0)
	require.NoError(t, err)
	require.Equal(t, uint64(1), pos)
	require.Len(t, l.Frames(), 1)
}

func TestFailReads_FailsEveryReadUntilMended(t *testing.T) {
	t.Parallel()
	l := memory.New()
	appendStart(t, l)
	l.FailReads(runlog.ErrUnavailable)
	reads := map[string]func() error{
		"run":  func() error { _, err := l.Run(t.Context(), testRun); return err },
		"last": func() error { _, err := l.Last(t.Context(), testRun); return err },
		"end":  func() error { _, err := l.End(t.Context()); return err },
	}
	for name, read := range reads {
		require.ErrorIs(t, read(), runlog.ErrUnavailable, name)
	}
	err := l.Follow(t.Context(), 0, func([]*frame.Frame) error { return nil }, func(subject.Run, uint64, error) {})
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	l.FailReads(nil)
	for name, read := range reads {
		require.NoError(t, read(), name)
	}
}

func TestFailReads_EndsAFollowThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New()
		done := make(chan error, 1)
		go func() {
			done <- l.Follow(t.Context(), 0, func([]*frame.Frame) error { return nil }, func(subject.Run, uint64, error) {})
		}()
		synctest.Wait()
		l.FailReads(runlog.ErrUnavailable)
		require.ErrorIs(t, <-done, runlog.ErrUnavailable)
	})
}

func TestDamage_IsReportedAndSkipped(t *testing.T) {
	t.Parallel()
	l := memory.New()
	s := appendStart(t, l)
	ev := wire.Draft{Type: wire.EventRunStarted}.Place(testRun.RunID, 0, time.UnixMilli(0))
	step := frame.New(testRun, subject.Step, s.Head(), []wire.Event{ev})
	pos, err := l.Append(t.Context(), step, s.Pos)
	require.NoError(t, err)
	l.Damage(s.Pos)

	var bad []uint64
	stop := errors.New("stop")
	err = l.Follow(t.Context(), 0, func(batch []*frame.Frame) error {
		require.Len(t, batch, 1)
		require.Equal(t, pos, batch[0].Pos)
		return stop
	}, func(_ subject.Run, pos uint64, err error) {
		require.ErrorIs(t, err, frame.ErrDamaged)
		bad = append(bad, pos)
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, []uint64{s.Pos}, bad)

	l.Damage(pos)
	_, err = l.Last(t.Context(), testRun)
	require.ErrorIs(t, err, frame.ErrDamaged)
}

func TestWipe_ForgetsEverything(t *testing.T) {
	t.Parallel()
	l := memory.New()
	appendStart(t, l)
	l.Wipe()
	_, err := l.Run(t.Context(), testRun)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	end, err := l.End(t.Context())
	require.NoError(t, err)
	require.Zero(t, end)
	waiting, held := l.Backlog()
	require.Zero(t, waiting+held)
}

func TestExpire_RedeliversAndALateAckStillCounts(t *testing.T) {
	t.Parallel()
	l := memory.New()
	appendStart(t, l)
	lost, err := l.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, l.Expire())
	again, err := l.Next(t.Context())
	require.NoError(t, err)
	require.True(t, again.Redelivered())

	require.NoError(t, lost.Ack())
	waiting, held := l.Backlog()
	require.Zero(t, waiting+held)
	require.NoError(t, again.Retry(), "the run is acknowledged; there is nothing to retry")
	waiting, held = l.Backlog()
	require.Zero(t, waiting+held)
	require.ErrorIs(t, again.Extend(), memory.ErrEnded)
}

func TestAck_RemovesAnExpiredRunFromTheQueue(t *testing.T) {
	t.Parallel()
	l := memory.New()
	appendStart(t, l)
	d, err := l.Next(t.Context())
	require.NoError(t, err)
	l.Expire()
	require.NoError(t, d.Ack())
	waiting, held := l.Backlog()
	require.Zero(t, waiting+held)
}

func TestRetry_HoldsBackForTheSetDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New()
		l.SetRetryDelay(time.Minute)
		appendStart(t, l)
		d, err := l.Next(t.Context())
		require.NoError(t, err)
		retried := time.Now()
		require.NoError(t, d.Retry())

		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		_, err = l.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		d, err = l.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(retried))
		require.NoError(t, d.Ack())
	})
}

func TestAppend_KeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	l := memory.New()
	f := start()
	_, err := l.Append(t.Context(), f, 0)
	require.NoError(t, err)
	require.Zero(t, f.Pos, "the caller's frame is left alone")
	f.Body[2] = 'X'
	last, err := l.Last(t.Context(), testRun)
	require.NoError(t, err, "a change of the caller's frame does not reach the log")
	require.NoError(t, last.Verify())
}
