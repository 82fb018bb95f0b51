package runlogtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func readGivesBack(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	want := []*frame.Frame{c.start(), c.add(subject.Step, 2), c.add(subject.Wake, 0), c.add(subject.End, 1)}
	got, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		sameFrame(t, want[i], got[i])
	}
	require.NoError(t, frame.VerifyChain(got))
}

// readsALongRunWhole: regardless of the number of frames, and of concurrent writes.
func readsALongRunWhole(t *testing.T, l Full) {
	c, other := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	c.start()
	other.start()
	for range 100 {
		c.add(subject.Step, 2)
		other.add(subject.Step, 1)
	}
	frames, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, frames, 101, "of an open run")
	c.add(subject.End, 1)
	frames, err = l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, frames, 102)
	require.NoError(t, frame.VerifyChain(frames))
	require.Equal(t, c.head, frames[101].Head())
}

// readsARunOfLargeFramesWhole: a page holds only a few of them.
func readsARunOfLargeFramesWhole(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.start()
	for range 6 {
		c.add(subject.Step, 4000)
	}
	frames, err := l.Run(within(t), c.run)
	require.NoError(t, err)
	require.Len(t, frames, 7)
	require.NoError(t, frame.VerifyChain(frames))
}

func readGivesOpenedRuns(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	want := []*frame.Frame{c.append(frame.NewOpen(c.run, record(c.run))), c.add(subject.Step, 1)}
	got, err := l.Run(within(t), subject.Run{Tenant: c.run.Tenant, RunID: c.run.RunID})
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		sameFrame(t, want[i], got[i])
	}
	_, err = l.Append(within(t), frame.NewStart(c.run, record(c.run)), 0)
	require.ErrorIs(t, err, runlog.ErrConflict, "the id is taken")
	nothingNext(t, l)
}

func readKnowsNoOtherRun(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.start()
	absent := []subject.Run{
		{Tenant: "acme", WorkflowID: "flow-1", RunID: "run-2"},
		{Tenant: "acme", RunID: "run"},
		{Tenant: "other", WorkflowID: "flow-1", RunID: "run-1"},
		{Tenant: "acme", WorkflowID: "flow-2", RunID: "run-1"},
	}
	for _, run := range absent {
		_, err := l.Run(within(t), run)
		require.ErrorIs(t, err, runlog.ErrNotFound, "%+v", run)
		_, err = l.First(within(t), run)
		require.ErrorIs(t, err, runlog.ErrNotFound, "%+v", run)
		_, err = l.Last(within(t), run)
		require.ErrorIs(t, err, runlog.ErrNotFound, "%+v", run)
	}
}

func readFindsAnyWorkflow(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.start()
	end := c.add(subject.End, 1)
	anyFlow := subject.Run{Tenant: c.run.Tenant, RunID: c.run.RunID}

	frames, err := l.Run(within(t), anyFlow)
	require.NoError(t, err)
	require.Len(t, frames, 2)
	require.Equal(t, c.run, frames[0].Run, "the frame has its workflow")
	first, err := l.First(within(t), anyFlow)
	require.NoError(t, err)
	sameFrame(t, frames[0], first)
	last, err := l.Last(within(t), anyFlow)
	require.NoError(t, err)
	sameFrame(t, end, last)
}

func readGivesLast(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	want := c.start()
	for _, kind := range []subject.Kind{subject.Step, subject.Wake, subject.Step, subject.End} {
		got, err := l.Last(within(t), c.run)
		require.NoError(t, err)
		sameFrame(t, want, got)
		want = c.add(kind, 1)
	}
}
