package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestPropagators_ReadTheFormsOfTheVariable(t *testing.T) {
	t.Parallel()
	needsHost(t)
	const (
		trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		w3c         = "00-" + trace + "-" + span + "-01"
	)
	for propagators, cases := range map[string]map[string][]string{
		"": {w3c: {"Traceparent", w3c}, "": {"B3", trace + "-" + span + "-1"}},
		"tracecontext,b3": {
			w3c:                                    {"B3", trace + "-" + span + "-1"},
			"00-" + trace + "-00f067aa0ba902b7-00": {"Traceparent", "00-" + trace + "-00f067aa0ba902b7-00"},
		},
		"b3multi": {w3c: {"X-B3-TraceId", trace, "X-B3-SpanId", span, "X-B3-Sampled", "1"}, "": {"Traceparent", w3c}},
		"jaeger":  {w3c: {"Uber-Trace-Id", trace + ":" + span + ":0:1"}},
		"none":    {"": {"Traceparent", w3c}},
	} {
		h := harness.StartWith(t, harness.Options{Env: []string{"OTEL_PROPAGATORS=" + propagators}})
		for want, headers := range cases {
			a, err := h.Client("dev-key").Do(t.Context(), http.MethodGet, "/v1/workflows", "", headers...)
			require.NoError(t, err)
			require.Equal(t, want, a.Header.Get("Traceparent"), "%s: %v", propagators, headers)
		}
	}
}
