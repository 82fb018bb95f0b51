package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/metrics"
)

func TestMetrics_ShowTheSharesAndHoldsOfProviders(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Limits("p", 4, 12.5, 0)
	m.Holds("p", 2)
	m.Holds("q", 0)
	got := all(t, m)
	require.Equal(t, map[string]float64{
		"maxConcurrent p":     4,
		"requestsPerMinute p": 12.5,
	}, values(got["waybill_provider_limit"]))
	require.Equal(t, map[string]float64{"p": 2, "q": 0}, values(got["waybill_provider_holds"]))
}
