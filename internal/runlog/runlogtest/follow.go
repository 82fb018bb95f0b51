package runlogtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// collect follows the log from pos until it has n frames.
func collect(t *testing.T, l Full, pos uint64, n int) []*frame.Frame {
	t.Helper()
	var got []*frame.Frame
	err := l.Follow(within(t), pos, func(batch []*frame.Frame) error {
		require.NotEmpty(t, batch)
		got = append(got, batch...)
		if len(got) >= n {
			return errStop
		}
		return nil
	}, noDamage(t))
	require.ErrorIs(t, err, errStop)
	return got
}

func noDamage(t *testing.T) func(subject.Run, uint64, error) {
	return func(_ subject.Run, pos uint64, err error) { t.Errorf("frame at %d reported as damaged: %v", pos, err) }
}

func followIsGapless(t *testing.T, l Full) {
	a, b := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	want := []*frame.Frame{a.start(), b.start()}
	for range 20 {
		want = append(want, a.add(subject.Step, 2), b.add(subject.Wake, 0))
	}
	want = append(want, b.add(subject.End, 1), a.add(subject.End, 1))
	for _, skip := range []int{0, 1, 7, len(want) - 1} {
		pos := uint64(0)
		if skip > 0 {
			pos = want[skip-1].Pos
		}
		got := collect(t, l, pos, len(want)-skip)
		require.Len(t, got, len(want)-skip, "after position %d", pos)
		for i := range got {
			sameFrame(t, want[skip+i], got[i])
		}
	}
}

func followSeesLaterAppends(t *testing.T, l Full) {
	const runs, steps = 4, 15
	var wg sync.WaitGroup
	for i := range runs {
		c := newChain(t, l, fmt.Sprintf("run-%d", i))
		wg.Go(func() {
			c.start()
			for range steps {
				c.add(subject.Step, 1)
			}
			c.add(subject.End, 1)
		})
	}
	got := collect(t, l, 0, runs*(steps+2))
	wg.Wait()

	byRun := map[string][]*frame.Frame{}
	last := uint64(0)
	for _, f := range got {
		require.Greater(t, f.Pos, last, "in order, and each once")
		last = f.Pos
		byRun[f.Run.RunID] = append(byRun[f.Run.RunID], f)
	}
	require.Len(t, byRun, runs)
	for id, frames := range byRun {
		require.NoError(t, frame.VerifyChain(frames), id)
		require.Equal(t, subject.End, frames[len(frames)-1].Kind)
	}
}

func followEndsWithHandlerError(t *testing.T, l Full) {
	newChain(t, l, "run-1").start()
	calls := 0
	err := l.Follow(within(t), 0, func([]*frame.Frame) error {
		calls++
		return errStop
	}, noDamage(t))
	require.ErrorIs(t, err, errStop)
	require.Equal(t, 1, calls)
}

func followEndsWithContext(t *testing.T, l Full) {
	newChain(t, l, "run-1").start()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	err := l.Follow(ctx, 0, func([]*frame.Frame) error {
		cancel()
		return nil
	}, noDamage(t))
	require.ErrorIs(t, err, context.Canceled)
}

func followKnowsEnd(t *testing.T, l Full) {
	end, err := l.End(within(t))
	require.NoError(t, err)
	require.Zero(t, end)
	c := newChain(t, l, "run-1")
	for _, stored := range []func() *frame.Frame{
		c.start,
		func() *frame.Frame { return c.add(subject.Step, 1) },
	} {
		want := stored().Pos
		end, err = l.End(within(t))
		require.NoError(t, err)
		require.Equal(t, want, end)
	}
}
