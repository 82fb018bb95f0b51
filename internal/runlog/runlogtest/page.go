package runlogtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func pageGivesPieces(t *testing.T, l Full) {
	c, other := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	start := c.start()
	other.start()
	want := []*frame.Frame{c.add(subject.Step, 2), c.add(subject.Step, 1), c.add(subject.End, 1)}
	other.add(subject.Step, 1)

	first, err := l.First(within(t), subject.Run{Tenant: c.run.Tenant, RunID: c.run.RunID})
	require.NoError(t, err)
	sameFrame(t, start, first)
	var got []*frame.Frame
	for pos := start.Pos; ; {
		page, err := l.Page(within(t), c.run, pos, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 2)
		if len(page) == 0 {
			break
		}
		got, pos = append(got, page...), page[len(page)-1].Pos
	}
	require.Len(t, got, len(want))
	for i := range want {
		sameFrame(t, want[i], got[i])
	}
}

// Many runs are read at a time, each in pages.
func pageIsBoundedInBytes(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	pos := c.start().Pos
	const frames = 5
	for range frames {
		require.Greater(t, len(c.add(subject.Step, 4000).Body), runlog.PageBytes/2)
	}
	for got := 0; got < frames; {
		page, err := l.Page(within(t), c.run, pos, 16)
		require.NoError(t, err)
		require.Len(t, page, min(2, frames-got))
		got, pos = got+len(page), page[len(page)-1].Pos
	}
}

func pageKnowsNoOtherRun(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	c.append(frame.NewOpen(c.run, record(c.run)))
	first, err := l.First(within(t), c.run)
	require.NoError(t, err)
	require.Equal(t, subject.Open, first.Kind, "an opened run has a record, too")
	foreign := subject.Run{Tenant: "other", WorkflowID: "flow-1", RunID: "run-1"}
	_, err = l.First(within(t), foreign)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	page, err := l.Page(within(t), foreign, 0, 8)
	require.NoError(t, err)
	require.Empty(t, page)
}
