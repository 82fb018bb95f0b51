package retention_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// A run that stays is tried again after growing pauses, and erased within an hour after it may be.
func TestSweep_TriesKeptRunsAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &table{refuse: map[string]error{"held": fault.New(fault.Conflict, "held")}}
		tries := 0
		x.prepare = func(_ context.Context, run subject.Run) error {
			if run.RunID == "held" {
				tries++
			}
			return nil
		}
		x.add("acme", "w", "held", 40)
		s := sweeper(x, 30, nil, nil)
		sweep := func(minutes int) {
			for range minutes {
				_, err := s.Sweep(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			}
		}
		sweep(10 * 60)
		require.Less(t, tries, 30, "in 600 sweeps")
		require.Greater(t, tries, 9, "once in an hour")
		delete(x.refuse, "held")
		sweep(61)
		require.Contains(t, x.expired, "held")
	})
}
