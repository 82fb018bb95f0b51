package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
)

// Rows without a document, and queries without rows, are limited, too.
func TestReadTallies_CountsRowsAndQueries(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]func(*store.ReadTallies) error{
		"rows":    func(r *store.ReadTallies) error { return r.Add(&store.Tallied{}) },
		"queries": (*store.ReadTallies).Query,
	} {
		r := store.ReadTallies{Limit: 1 << 20}
		n := 0
		for ; count(&r) == nil; n++ {
			require.Less(t, n, 1<<13, name)
		}
		require.Greater(t, n, 100, name)
	}
	none := store.ReadTallies{}
	require.NoError(t, none.Query())
}
