package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

func TestNewErase_ListsThePositionsAsRanges(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	f := frame.NewErase(run, frame.Head{Pos: 9, Hash: "h", Next: 4}, []uint64{2, 3, 4, 7, 9}, frame.Requested)
	require.NoError(t, f.Verify())
	require.JSONEq(t, `{"positions":[[2,4],[7,7],[9,9]]}`, string(f.Body))
	require.Equal(t, "h", f.Prev)
	require.Equal(t, 4, f.First)
	require.Equal(t, 3, f.Last)
	events, err := f.Events()
	require.NoError(t, err)
	require.Empty(t, events)
	e, err := f.Erasure()
	require.NoError(t, err)
	require.Equal(t, uint64(5), e.Positions.Count())
}

func TestErasure_RejectsPositionsOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"positions":[[3,2]]}`, `{"positions":[[0,2]]}`, `{"positions":[[1,4],[4,5]]}`, `[]`, ``,
	} {
		f := &frame.Frame{Kind: subject.Erase, Body: []byte(body)}
		_, err := f.Erasure()
		require.ErrorIs(t, err, frame.ErrDamaged, body)
	}
	_, err := (&frame.Frame{Kind: subject.Step, Body: []byte(`{"positions":[[1,2]]}`)}).Erasure()
	require.Error(t, err)
}
