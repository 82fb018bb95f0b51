package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Replaced values stay in the files of a bucket, so they must not hold content.
func TestStore_HoldsNothingInTheClear(t *testing.T) {
	t.Parallel()
	_, store, _ := long(t)
	stored := string(value(t, store))
	for _, text := range []string{theRun.RunID, "node.completed", "workflowId"} {
		require.NotContains(t, stored, text)
	}
}
