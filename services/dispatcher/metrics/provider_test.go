package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/metrics"
)

func TestMetrics_ShowTheSharesAndHoldsOfProviders(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
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

// Series have the names of the conventions.
func TestMetrics_NameCloudsByTheConventions(t *testing.T) {
	t.Parallel()
	m := metrics.New(func(string) string { return "bedrock" })
	m.Called("my-cloud", time.Second)
	require.Contains(t, all(t, m)["gen_ai_client_operation_duration_seconds"].String(), `value:"aws.bedrock"`)
}
