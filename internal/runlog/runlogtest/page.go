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

func pageGivesATenantInPieces(t *testing.T, l Full) {
	a, b := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	other := newChain(t, l, "run-1")
	other.run.Tenant = "other"
	want := []*frame.Frame{a.start(), b.start()}
	other.start()
	for range 3 {
		want = append(want, a.add(subject.Step, 2), b.add(subject.Step, 1))
		other.add(subject.Step, 1)
	}
	last := want[len(want)-1].Pos
	later := a.add(subject.End, 1)
	for after := range len(want) {
		pos := want[after].Pos
		var got []*frame.Frame
		for pos < last {
			page, read, err := l.TenantPage(within(t), a.run.Tenant, pos, last, 2, noDamage(t))
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 2)
			require.Greater(t, read, pos)
			require.LessOrEqual(t, read, last)
			got, pos = append(got, page...), read
		}
		require.Len(t, got, len(want)-after-1, "after position %d", want[after].Pos)
		for i := range got {
			sameFrame(t, want[after+1+i], got[i])
		}
	}
	page, read, err := l.TenantPage(within(t), a.run.Tenant, last, later.Pos+100, 9, noDamage(t))
	require.NoError(t, err)
	require.Len(t, page, 1)
	sameFrame(t, later, page[0])
	require.Equal(t, later.Pos+100, read, "no frame follows")
	page, read, err = l.TenantPage(within(t), "third", 0, last, 9, noDamage(t))
	require.NoError(t, err)
	require.Empty(t, page)
	require.Equal(t, last, read)
}
