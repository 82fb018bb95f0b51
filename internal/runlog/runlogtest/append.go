package runlogtest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func appendPlacesInOrder(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	a, b, d := c.start(), c.add(subject.Step, 3), c.add(subject.End, 1)
	require.Less(t, a.Pos, b.Pos)
	require.Less(t, b.Pos, d.Pos)
	require.Zero(t, b.First)
	require.Equal(t, 3, d.First)
}

func appendRefusesStale(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	start := c.start()
	stale := *c
	c.add(subject.Step, 1)

	f := stale.next(subject.End, 2)
	_, err := l.Append(within(t), f, start.Pos)
	require.ErrorIs(t, err, runlog.ErrConflict)
	_, err = l.Append(within(t), f, c.head.Pos+100)
	require.ErrorIs(t, err, runlog.ErrConflict, "a position that does not exist yet")

	frames, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, frames, 2, "nothing was written")
}

// appendRefusesSecondStart holds also if the second start names another workflow: a run id
// identifies one run of a tenant.
func appendRefusesSecondStart(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.start()
	other := c.run
	other.WorkflowID = "flow-2"
	for _, run := range []subject.Run{c.run, other} {
		f := frame.NewStart(run, append(record(run), ' '))
		_, err := l.Append(within(t), f, 0)
		require.ErrorIs(t, err, runlog.ErrConflict, "start under %s", run.WorkflowID)
	}
}

func appendTakesRetryAsOnce(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	start := frame.NewStart(c.run, record(c.run))
	stored := c.append(start)
	pos, err := l.Append(within(t), start, 0)
	require.NoError(t, err)
	require.Equal(t, stored.Pos, pos)

	after := c.head.Pos
	f := c.next(subject.Step, 2)
	stored = c.append(f)
	pos, err = l.Append(within(t), f, after)
	require.NoError(t, err)
	require.Equal(t, stored.Pos, pos)

	frames, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, frames, 2)
}

func appendTakesLateRetry(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.start()
	after := c.head.Pos
	f := c.next(subject.Step, 1)
	stored := c.append(f)
	c.add(subject.Step, 1)
	pos, err := l.Append(within(t), f, after)
	require.NoError(t, err)
	require.Equal(t, stored.Pos, pos)
}

func appendLetsOneRacerWin(t *testing.T, l Full) {
	const racers, rounds = 8, 10
	c := newChain(t, l, "run-1")
	c.start()
	for range rounds {
		frames := make([]*frame.Frame, racers)
		for i := range frames {
			frames[i] = c.next(subject.Step, i+1)
		}
		won := race(t, l, frames, c.head.Pos)
		require.Len(t, won, 1, "exactly one racer appends")
		c.head = won[0].Head()
	}
	chained, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, chained, rounds+1)
	require.NoError(t, frame.VerifyChain(chained))
}

// race appends all frames concurrently after one position and returns the stored ones.
func race(t *testing.T, l Full, frames []*frame.Frame, after uint64) []*frame.Frame {
	t.Helper()
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(frames))
		ctx  = within(t)
	)
	for i, f := range frames {
		wg.Go(func() { f.Pos, errs[i] = l.Append(ctx, f, after) })
	}
	wg.Wait()
	var won []*frame.Frame
	for i, err := range errs {
		if err == nil {
			won = append(won, frames[i])
			continue
		}
		require.ErrorIs(t, err, runlog.ErrConflict)
	}
	return won
}

func appendDoesNotMixRuns(t *testing.T, l Full) {
	a, b := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	foreign := newChain(t, l, "run-1")
	foreign.run.Tenant = "other"
	a.start()
	b.start()
	foreign.start()
	for range 3 {
		a.add(subject.Step, 1)
		b.add(subject.Step, 2)
		foreign.add(subject.Step, 3)
	}
	for _, c := range []*chain{a, b, foreign} {
		frames, err := l.Run(within(t), c.run)
		require.NoError(t, err)
		require.Len(t, frames, 4)
		require.NoError(t, frame.VerifyChain(frames))
		require.Equal(t, c.run, frames[0].Run)
	}
}

func appendReportsEndedContext(t *testing.T, l Full) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newChain(t, l, "run-1")
	_, err := l.Append(ctx, frame.NewStart(c.run, record(c.run)), 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
}
