package runlog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
)

func TestRetryAfter_HoldsARunBackForSecondsOnly(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 8, 100: 8} {
		require.Equal(t, time.Duration(want)*time.Second, runlog.RetryAfter(time.Second, tries), "try %d", tries)
	}
}
