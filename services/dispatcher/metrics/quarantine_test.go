package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/metrics"
)

func TestQuarantinedRuns_AreCountedByReason(t *testing.T) {
	t.Parallel()
	runs := metrics.QuarantinedRuns(func() map[string]int { return map[string]int{"panic": 0, "log_damaged": 2} })
	require.NoError(t, testutil.CollectAndCompare(runs, strings.NewReader(`
# HELP waybill_dispatcher_quarantined_runs Quarantined runs of the installation, by reason. All dispatchers report the same number.
# TYPE waybill_dispatcher_quarantined_runs gauge
waybill_dispatcher_quarantined_runs{reason="log_damaged"} 2
waybill_dispatcher_quarantined_runs{reason="panic"} 0
`)))
}
