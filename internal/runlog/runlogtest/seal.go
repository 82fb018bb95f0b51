package runlogtest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// seal seals a whole run.
func seal(t *testing.T, l runlog.Sealer, frames []*frame.Frame) {
	t.Helper()
	last := frames[len(frames)-1]
	require.NoError(t, l.Seal(within(t), last.Run, last.Head(), positionsOf(frames)))
}

func positionsOf(frames []*frame.Frame) (out []uint64) {
	for _, f := range frames {
		out = append(out, f.Pos)
	}
	return out
}

// allEnded returns the ids of all ended runs that are neither sealed nor erased.
func allEnded(t *testing.T, l runlog.Sealer, before time.Time) (ids []string) {
	t.Helper()
	for after, more := uint64(0), true; more; {
		var (
			ends []*frame.Frame
			err  error
		)
		ends, after, more, err = l.Ended(within(t), after, before, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(ends), 2)
		for _, f := range ends {
			require.NoError(t, f.Verify())
			require.Equal(t, subject.End, f.Kind)
			ids = append(ids, f.Run.RunID)
		}
	}
	return ids
}

func sealFindsEndedRuns(t *testing.T, l Full) {
	ended(t, l, "a")
	going := newChain(t, l, "going")
	going.start()
	_, b := ended(t, l, "b")
	c, _ := ended(t, l, "c")
	ended(t, l, "d")
	later := time.Now().Add(time.Hour)
	require.Equal(t, []string{"a", "b", "c", "d"}, allEnded(t, l, later))
	require.Empty(t, allEnded(t, l, time.Now().Add(-time.Hour)))
	seal(t, l, b)
	_, err := l.Mark(within(t), c.run, frame.Requested)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "d"}, allEnded(t, l, later))
	require.NoError(t, l.Drop(within(t), b[0].Run, positionsOf(b), runlog.Overwrite))
	require.Equal(t, []string{"a", "d"}, allEnded(t, l, later))
	going.add(subject.End, 1)
	require.Equal(t, []string{"a", "d", "going"}, allEnded(t, l, later))
}

func sealMarksEndedRuns(t *testing.T, l Full) {
	going := newChain(t, l, "going")
	start := going.start()
	step := going.add(subject.Step, 1)
	require.ErrorIs(t, l.Seal(within(t), going.run, start.Head(), []uint64{start.Pos}), runlog.ErrConflict, "the run goes on")
	require.ErrorIs(t, l.Drop(within(t), going.run, []uint64{start.Pos, step.Pos}, runlog.Overwrite), runlog.ErrConflict, "the run is not sealed")
	require.ErrorIs(t, l.Drop(within(t), subject.Run{Tenant: "acme", WorkflowID: "flow-1", RunID: "ghost"}, nil, runlog.Overwrite), runlog.ErrConflict)
	frames, err := l.Run(within(t), going.run)
	require.NoError(t, err)
	require.Equal(t, []uint64{start.Pos, step.Pos}, positionsOf(frames))

	_, gone := ended(t, l, "gone")
	_, err = l.Mark(within(t), gone[0].Run, frame.Requested)
	require.NoError(t, err)
	last := gone[len(gone)-1]
	require.ErrorIs(t, l.Seal(within(t), last.Run, last.Head(), positionsOf(gone)), runlog.ErrConflict, "the run is erased")
}

func sealHidesRun(t *testing.T, l Full) {
	c, frames := ended(t, l, "r")
	other, _ := ended(t, l, "other")
	check := func() {
		t.Helper()
		for _, run := range []subject.Run{c.run, {Tenant: "acme", RunID: "r"}} {
			_, err := l.Run(within(t), run)
			require.ErrorIs(t, err, runlog.ErrSealed)
			_, err = l.Last(within(t), run)
			require.ErrorIs(t, err, runlog.ErrSealed)
		}
		_, err := l.After(within(t), c.run, frames[len(frames)-1].Pos)
		require.ErrorIs(t, err, runlog.ErrSealed)
		_, err = l.Page(within(t), c.run, frames[len(frames)-1].Pos, 10)
		require.ErrorIs(t, err, runlog.ErrSealed)
		_, err = l.Append(within(t), frame.NewStart(c.run, record(c.run)).By("another"), 0)
		require.ErrorIs(t, err, runlog.ErrConflict, "the id stays in use")
		_, err = l.Append(within(t), c.next(subject.Step, 1), frames[len(frames)-1].Pos)
		require.ErrorIs(t, err, runlog.ErrConflict, "nothing follows")
	}
	seal(t, l, frames)
	seal(t, l, frames) // a second time changes nothing
	check()
	for range 2 {
		require.NoError(t, l.Drop(within(t), c.run, positionsOf(frames), runlog.Release))
		seal(t, l, frames)
	}
	check()
	_, err := l.First(within(t), subject.Run{Tenant: "acme", RunID: "r"})
	require.ErrorIs(t, err, runlog.ErrSealed)
	_, err = l.After(within(t), c.run, 0)
	require.ErrorIs(t, err, runlog.ErrSealed)
	_, err = l.Page(within(t), c.run, 0, 10)
	require.ErrorIs(t, err, runlog.ErrSealed)
	_, err = l.Run(within(t), other.run)
	require.NoError(t, err)
}

func sealShowsMark(t *testing.T, l Full) {
	c, frames := ended(t, l, "r")
	seal(t, l, frames)
	require.NoError(t, l.Drop(within(t), c.run, positionsOf(frames), runlog.Release))
	other, _ := ended(t, l, "s")
	var mark *frame.Frame
	err := l.Follow(within(t), 0, func(batch []*frame.Frame) error {
		for _, f := range batch {
			if f.Run == c.run {
				require.Equal(t, subject.Seal, f.Kind, "frame at %d is removed", f.Pos)
				mark = f
			}
			if f.Pos == other.head.Pos {
				return errStop
			}
		}
		return nil
	}, func(subject.Run, uint64, error) { t.Error("no frame is damaged") })
	require.ErrorIs(t, err, errStop)
	s, err := mark.Sealing()
	require.NoError(t, err)
	require.Equal(t, frame.Positions{{frames[0].Pos, frames[len(frames)-1].Pos}}, s.Positions)
	events, err := mark.Events()
	require.NoError(t, err)
	require.Empty(t, events)
	end, err := l.End(within(t))
	require.NoError(t, err)
	newest, err := l.Newest(within(t))
	require.NoError(t, err)
	require.Equal(t, end, newest)
	page, _, err := l.TenantPage(within(t), "acme", 0, end, 100, func(_ subject.Run, pos uint64, err error) { t.Errorf("%d: %v", pos, err) })
	require.NoError(t, err)
	require.Equal(t, mark.Pos, page[0].Pos)
}

func sealedRunsAreErased(t *testing.T, l Full) {
	for _, dropped := range []bool{false, true} {
		c, frames := ended(t, l, map[bool]string{false: "whole", true: "dropped"}[dropped])
		seal(t, l, frames)
		if dropped {
			require.NoError(t, l.Drop(within(t), c.run, positionsOf(frames), runlog.Release))
		}
		marked, err := l.Mark(within(t), subject.Run{Tenant: "acme", RunID: c.run.RunID}, frame.Requested)
		require.NoError(t, err)
		require.True(t, marked)
		require.ErrorIs(t, l.Drop(within(t), c.run, positionsOf(frames), runlog.Release), runlog.ErrConflict, "the erasure removes the rest")
		mark := &frame.Frame{Run: c.run, Kind: subject.Erase}
		left, err := l.Remaining(within(t), mark)
		require.NoError(t, err)
		require.Len(t, left, len(frames)*map[bool]int{false: 1, true: 0}[dropped])
		for range 2 {
			require.NoError(t, l.Purge(within(t), mark))
		}
		left, err = l.Remaining(within(t), mark)
		require.NoError(t, err)
		require.Empty(t, left)
		_, err = l.Run(within(t), c.run)
		require.ErrorIs(t, err, runlog.ErrErased)
		_, err = l.Last(within(t), c.run)
		require.ErrorIs(t, err, runlog.ErrErased)
		marked, err = l.Mark(within(t), c.run, frame.Requested)
		require.NoError(t, err)
		require.False(t, marked)
	}
	var kinds []subject.Kind
	end, err := l.End(within(t))
	require.NoError(t, err)
	err = l.Follow(within(t), 0, func(batch []*frame.Frame) error {
		for _, f := range batch {
			kinds = append(kinds, f.Kind)
		}
		if batch[len(batch)-1].Pos == end {
			return errStop
		}
		return nil
	}, func(subject.Run, uint64, error) { t.Error("no frame is damaged") })
	require.ErrorIs(t, err, errStop)
	require.Equal(t, slices.Repeat([]subject.Kind{subject.Seal, subject.Erase}, 2), kinds, "marks stay")
}
