package jetstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetry_HoldsARunBackForSecondsOnly(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for _, tries := range []uint64{1, 2, 3, 4, 5, 100} {
		got = append(got, heldBack(DefaultConfig().RetryDelay, tries))
	}
	require.Equal(t, []time.Duration{
		time.Second,
		2 * time.Second,
		4 * time.Second,
		8 * time.Second,
		8 * time.Second,
		8 * time.Second,
	}, got)
}
