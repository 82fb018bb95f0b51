package row_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

func TestLists_ComeBack(t *testing.T) {
	t.Parallel()
	for _, tags := range [][]string{
		nil,
		{"a"},
		{"a", "b c"},
		{"a", "", "b"},
		{"a\nb"},
		{"\n", "[\"x\"]"},
		{"a", "b\n"},
		{`\n`, "\n"},
		{`a\\n`, "\n\n\xff"},
	} {
		require.Equal(t, tags, row.SplitTags(row.JoinTags(tags)))
	}
	for _, types := range [][]wire.EventType{nil, {wire.EventLogAppended}, {wire.EventLogAppended, "vendor.acme.thing"}} {
		require.Equal(t, types, row.SplitTypes(row.JoinTypes(types)))
	}
}

// Files hold these sums: another way of summing up would make them damaged.
func TestSums_StayWhatTheyAre(t *testing.T) {
	t.Parallel()
	key := store.Key{Tenant: "acme", RunID: "r1"}
	run := store.Run{
		Key:        key,
		WorkflowID: "flow",
		Status:     wire.StatusRunning,
		CreatedAt:  "2026-03-01T12:00:00.000Z",
		Head:       3,
		Pos:        10,
		Hash:       "h",
		DueMs:      7,
		Asks:       2,
	}
	frame := store.Frame{Key: key, First: -1, Last: -1, Body: []byte(`{}`)}
	require.Equal(t, row.Sum(0xe4cd1b76), row.SumTail(store.Tail{Pos: 12, Hash: "h"}))
	require.Equal(t, row.Sum(0x6bf7a0f3), row.SumRun(&run, "a\nb"))
	require.Equal(t, row.Sum(0xe245299f), row.SumFrame(&frame, "x,y"))
	require.NoError(t, row.SumTail(store.Tail{}).Verify(int64(row.SumTail(store.Tail{})), "tail", key))
	require.ErrorIs(t, row.SumTail(store.Tail{}).Verify(1, "tail", key), store.ErrDamaged)
}
