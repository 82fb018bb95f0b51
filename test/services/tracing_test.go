package services

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

// Each service adds its spans to a request's trace, under its own name and the caller's span. Ids
// and texts of callers are in no name and no attribute.
func TestTracing_EachServiceRecordsItsCalls(t *testing.T) {
	collector := otlp.New()
	t.Cleanup(collector.Close)
	t.Setenv("WAYBILL_OTLP_ENDPOINT", collector.URL())
	t.Setenv("WAYBILL_TRACE_RATIO", "0")
	h := harness.ServeAll(t, []string{"--nats", broker(t)}, "--api-key", "key-acme=acme:*")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := h.Client("key-acme")
	const trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	traced := []string{"Traceparent", "00-" + trace + "-" + caller + "-01"}
	a, err := c.Do(ctx, http.MethodPost, "/v1/workflows", workflow)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	a, err = c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"one","metadata":{"note":"swordfish"}}`, traced...)
	require.NoError(t, err)
	var created struct{ RunID string }
	require.NoError(t, a.JSON(&created))
	_, err = c.Finish(ctx, created.RunID)
	require.NoError(t, err)
	a, err = c.Do(ctx, http.MethodGet, "/v1/runs/"+created.RunID+"/debug-bundle", "", traced...)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	for path, status := range map[string]int{"/v1/runs/" + created.RunID: http.StatusOK, "/v1/runs/run_swordfish": http.StatusNotFound} {
		a, err := c.Do(ctx, http.MethodGet, path, "", traced...)
		require.NoError(t, err)
		require.Equal(t, status, a.Status)
	}

	spans := map[string]map[string][]otlp.Span{} // by service and name
	wanted := map[string]string{
		"waybill-gateway": "openwop.v1.Engine/CreateRun", "waybill-eventlog": "waybill.eventlog.v1.EventLog/GetRun",
		"waybill-redactor": "waybill.redactor.v1.Redactor/Redact", "waybill-dispatcher": "openwop.run",
	}
	require.Eventually(t, func() bool {
		clear(spans)
		for _, s := range collector.Spans() {
			if spans[s.Service] == nil {
				spans[s.Service] = map[string][]otlp.Span{}
			}
			spans[s.Service][s.Name] = append(spans[s.Service][s.Name], s)
		}
		for service, name := range wanted {
			if len(spans[service][name]) == 0 {
				return false
			}
		}
		return len(spans["waybill-gateway"]["openwop.v1.Engine/GetRun"]) == 2 && len(spans["waybill-eventlog"]["waybill.eventlog.v1.EventLog/GetRun"]) >= 2
	}, 30*time.Second, 20*time.Millisecond, "%v", collector.Spans())
	require.Empty(t, collector.Refused())

	above := map[string]bool{caller: true, spans["waybill-dispatcher"]["openwop.run"][0].SpanID: true}
	for _, named := range spans["waybill-gateway"] {
		for _, s := range named {
			require.Equal(t, caller, s.ParentID, s.Name)
			above[s.SpanID] = true
		}
	}
	codes := map[any]int{}
	for service, named := range spans {
		for name, all := range named {
			for _, s := range all {
				require.Equal(t, trace, s.TraceID, "%s: a call without a trace must have no span", name)
				if strings.HasPrefix(name, "openwop.") && !strings.Contains(name, "/") {
					continue // the run's own
				}
				require.Equal(t, "grpc", s.Attributes["rpc.system"], name)
				require.Equal(t, name, s.Attributes["rpc.service"].(string)+"/"+s.Attributes["rpc.method"].(string))
				require.True(t, above[s.ParentID], "%s of %s is under %s", name, service, s.ParentID)
				if name == "openwop.v1.Engine/GetRun" {
					codes[s.Attributes["error.type"]]++
				}
			}
		}
	}
	require.Equal(t, map[any]int{nil: 1, "run_not_found": 1}, codes)
	require.NotContains(t, string(collector.Bytes()), "swordfish")
	require.NotContains(t, string(collector.Bytes()), "key-acme")
}
