package runlogtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// ended writes a whole run.
func ended(t *testing.T, l runlog.Appender, runID string) (*chain, []*frame.Frame) {
	t.Helper()
	c := newChain(t, l, runID)
	return c, []*frame.Frame{c.start(), c.add(subject.Step, 2), c.add(subject.Wake, 0), c.add(subject.Step, 1), c.add(subject.End, 1)}
}

func eraseMarksEndedRuns(t *testing.T, l Full) {
	active := newChain(t, l, "active")
	active.start()
	active.add(subject.Step, 1)
	_, err := l.Mark(within(t), subject.Run{Tenant: "acme", RunID: "active"}, frame.Requested)
	require.ErrorIs(t, err, runlog.ErrActive)
	_, err = l.Mark(within(t), subject.Run{Tenant: "acme", RunID: "unknown"}, frame.Requested)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	ended(t, l, "r")
	_, err = l.Mark(within(t), subject.Run{Tenant: "other", RunID: "r"}, frame.Requested)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	for _, want := range []bool{true, false, false} {
		marked, err := l.Mark(within(t), subject.Run{Tenant: "acme", RunID: "r"}, frame.Requested)
		require.NoError(t, err)
		require.Equal(t, want, marked)
	}
	active.add(subject.End, 1)
	marked, err := l.Mark(within(t), active.run, frame.Requested)
	require.NoError(t, err)
	require.True(t, marked)
}

func eraseHidesRun(t *testing.T, l Full) {
	c, frames := ended(t, l, "r")
	_, err := l.Mark(within(t), c.run, frame.Requested)
	require.NoError(t, err)
	check := func() {
		_, err := l.Run(within(t), c.run)
		require.ErrorIs(t, err, runlog.ErrErased)
		_, err = l.Last(within(t), subject.Run{Tenant: "acme", RunID: "r"})
		require.ErrorIs(t, err, runlog.ErrErased)
		_, err = l.Append(within(t), frame.NewStart(c.run, record(c.run)).By("another"), 0)
		require.ErrorIs(t, err, runlog.ErrConflict, "the id stays in use")
		_, err = l.Append(within(t), c.next(subject.Step, 1), frames[len(frames)-1].Pos)
		require.ErrorIs(t, err, runlog.ErrConflict, "nothing follows")
	}
	check()
	require.NoError(t, l.Purge(within(t), &frame.Frame{Run: c.run, Kind: subject.Erase}))
	check()
	_, err = l.First(within(t), c.run)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	rest, err := l.After(within(t), c.run, 0)
	require.NoError(t, err)
	require.Empty(t, rest)
	page, err := l.Page(within(t), c.run, 0, 10)
	require.NoError(t, err)
	require.Empty(t, page)
}

func eraseRemovesFrames(t *testing.T, l Full) {
	_, before := ended(t, l, "before")
	c, frames := ended(t, l, "r")
	other, after := ended(t, l, "after")
	_, err := l.Mark(within(t), c.run, frame.Requested)
	require.NoError(t, err)
	mark := &frame.Frame{Run: c.run, Kind: subject.Erase}
	rest, err := l.Remaining(within(t), mark)
	require.NoError(t, err)
	require.Len(t, rest, len(frames))
	for i := range frames {
		sameFrame(t, frames[i], rest[i])
	}
	for range 2 {
		require.NoError(t, l.Purge(within(t), mark))
	}
	rest, err = l.Remaining(within(t), mark)
	require.NoError(t, err)
	require.Empty(t, rest)
	for _, want := range [][]*frame.Frame{before, after} {
		got, err := l.Run(within(t), want[0].Run)
		require.NoError(t, err)
		require.Len(t, got, len(want))
	}
	newest, err := l.Newest(within(t))
	require.NoError(t, err)
	end, err := l.End(within(t))
	require.NoError(t, err)
	require.Equal(t, end, newest, "the mark is the last frame")
	require.Greater(t, end, other.head.Pos)
}

func eraseShowsMark(t *testing.T, l Full) {
	c, frames := ended(t, l, "r")
	ended(t, l, "s")
	_, err := l.Mark(within(t), c.run, frame.Requested)
	require.NoError(t, err)
	require.NoError(t, l.Purge(within(t), &frame.Frame{Run: c.run, Kind: subject.Erase}))
	var mark *frame.Frame
	err = l.Follow(within(t), 0, func(batch []*frame.Frame) error {
		for _, f := range batch {
			require.True(t, f.Run != c.run || f.Kind == subject.Erase, "frame at %d is removed", f.Pos)
			if f.Kind == subject.Erase {
				mark = f
				return errStop
			}
		}
		return nil
	}, func(subject.Run, uint64, error) { t.Error("no frame is damaged") })
	require.ErrorIs(t, err, errStop)
	require.Equal(t, c.run, mark.Run)
	e, err := mark.Erasure()
	require.NoError(t, err)
	require.Equal(t, frame.Positions{{frames[0].Pos, frames[len(frames)-1].Pos}}, e.Positions)
}

func eraseDeliversMark(t *testing.T, l Full) {
	c, _ := ended(t, l, "r")
	ended(t, l, "s")
	_, err := l.Mark(within(t), c.run, frame.Requested)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	other, _ := ended(t, l, "u")
	var got []subject.Run
	err = l.Erasures(ctx, func(_ context.Context, mark *frame.Frame) error {
		switch got = append(got, mark.Run); {
		case len(got) < 3:
			return errors.New("not yet")
		case mark.Run == other.run:
			stop()
		default:
			_, err := l.Mark(ctx, other.run, frame.Requested)
			return err
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []subject.Run{c.run, c.run, c.run, other.run}, got)
}
