package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/retry"
)

// starts returns when the attempts start.
func starts(ctx context.Context, p retry.Policy, most int) (at []time.Duration) {
	began := time.Now()
	for range p.Tries(ctx) {
		if at = append(at, time.Since(began)); len(at) == most {
			break
		}
	}
	return at
}

func TestTries_WaitsLongerUpToTheMaximum(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy retry.Policy
		want   []time.Duration
	}{
		"equal":    {retry.Every(2), []time.Duration{0, 2, 4, 6, 8, 10}},
		"doubled":  {retry.Policy{Base: 1, Max: 5}, []time.Duration{0, 1, 3, 7, 12, 17}},
		"attempts": {retry.Policy{Base: 1, Attempts: 3}, []time.Duration{0, 1, 2}},
		"one":      {retry.Policy{Base: 1, Attempts: 1}, []time.Duration{0}},
		"total":    {retry.Policy{Base: 1, Max: 100, Total: 7}, []time.Duration{0, 1, 3, 7}},
	} {
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, tc.want, starts(t.Context(), tc.policy, 6), name)
		})
	}
}

func TestTries_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.Len(t, starts(ctx, retry.Every(2*time.Second), 9), 2)
	})
}

func TestReset_StartsWithTheFirstWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := retry.Policy{Base: time.Second, Max: time.Minute}.Start()
		require.True(t, w.Wait(t.Context()))
		require.Equal(t, 2*time.Second, w.Next())
		w.Reset()
		require.Equal(t, time.Second, w.Next())
	})
}
