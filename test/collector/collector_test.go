// Package collector tests the export of telemetry to a real OpenTelemetry Collector, whose binary
// WAYBILL_COLLECTOR names (make integration ONLY=collector).
package collector

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

const config = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %[1]s}
      http: {endpoint: %[2]s}
exporters:
  otlp_http:
    endpoint: %[3]s
    compression: none
    encoding: proto
service:
  telemetry:
    metrics: {level: none}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
    metrics: {receivers: [otlp], exporters: [otlp_http]}
    logs: {receivers: [otlp], exporters: [otlp_http]}
`

// collector starts a collector. It returns its addresses, and what it sends on.
func collector(t *testing.T) (grpc, http string, behind *otlp.Collector) {
	t.Helper()
	binary := os.Getenv("WAYBILL_COLLECTOR")
	if binary == "" {
		t.Skip("WAYBILL_COLLECTOR is unset: it names the binary of tools/collector")
	}
	behind = otlp.New()
	t.Cleanup(behind.Close)
	ports := []string{freeport.Addr(t), freeport.Addr(t)}
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, config, ports[0], ports[1], behind.URL()), 0o600))
	cmd := exec.CommandContext(t.Context(), binary, "--config", "file:"+file)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended
	require.Eventually(t, func() bool {
		res, err := http2get("http://" + ports[1] + "/v1/traces")
		return err == nil && res == 405
	}, 30*time.Second, 50*time.Millisecond, "the collector listens")
	return ports[0], ports[1], behind
}

func http2get(url string) (int, error) {
	res, err := http.Get(url) //nolint:noctx,gosec // a test's own server
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// A host that is configured by standard variables only shows a model call in a collector.
func TestHost_IsConfiguredByTheStandardVariables(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			grpc, http, behind := collector(t)
			endpoint := "http://" + http
			if protocol == "grpc" {
				endpoint = "http://" + grpc
			}
			h := harness.StartWith(t, harness.Options{
				Args: []string{"--log-level", "info"},
				Env: []string{
					"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
					"OTEL_SERVICE_NAME=triage-desk", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test",
					"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=200", "OTEL_BLRP_SCHEDULE_DELAY=100",
				},
			})
			c := h.Client("dev-key")
			a, err := c.Do(t.Context(), "POST", "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"I was charged twice for my lamp."}}`)
			require.NoError(t, err)
			require.Equal(t, 201, a.Status, "%s", a.Body)

			var call otlp.Span
			require.Eventually(t, func() bool {
				spans := behind.Spans()
				at := slices.IndexFunc(spans, func(s otlp.Span) bool { return s.Attributes["gen_ai.operation.name"] == "chat" })
				if at < 0 {
					return false
				}
				call = spans[at]
				return behind.Metrics()["gen_ai.client.token.usage"] != "" && slices.Contains(behind.Logs(), "run ended")
			}, 60*time.Second, 50*time.Millisecond)
			require.Equal(t, "triage-desk", call.Service)
			require.Equal(t, "sample", call.Attributes["gen_ai.provider.name"])
			require.Equal(t, "sample-1", call.Attributes["gen_ai.request.model"])
			require.Equal(t, "sample-1", call.Attributes["gen_ai.response.model"])
			require.Equal(t, []string{"stop"}, call.Attributes["gen_ai.response.finish_reasons"])
			require.Positive(t, call.Attributes["gen_ai.usage.input_tokens"])
			require.Positive(t, call.Attributes["gen_ai.usage.output_tokens"])
			metrics := behind.Metrics()
			require.Equal(t, "s", metrics["gen_ai.client.operation.duration"])
			require.Contains(t, metrics, "openwop_run_completed_total")
			require.NotContains(t, string(behind.Bytes()), "charged twice", "no content without being asked for it")
		})
	}
}

// The texts of a model call are exported if that is asked for, without secrets.
func TestHost_ExportsTextsOnDemand(t *testing.T) {
	t.Parallel()
	_, http, behind := collector(t)
	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(secrets, []byte("lamp: glühbirne-4711\n"), 0o600))
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--prompt-observability", "full", "--secrets-file", secrets},
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + http, "OTEL_BSP_SCHEDULE_DELAY=100",
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
		},
	})
	a, err := h.Client("dev-key").Do(t.Context(), "POST", "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"I was charged twice for my glühbirne-4711."}}`)
	require.NoError(t, err)
	require.Equal(t, 201, a.Status, "%s", a.Body)
	var text string
	require.Eventually(t, func() bool {
		for _, s := range behind.Spans() {
			if in, ok := s.Attributes["gen_ai.input.messages"].(string); ok {
				text = in
				return true
			}
		}
		return false
	}, 60*time.Second, 50*time.Millisecond)
	require.Contains(t, text, "charged twice")
	require.Contains(t, text, "[REDACTED:lamp]")
	require.True(t, strings.HasPrefix(text, `[{"role":"user","parts":[{"type":"text","content":`), "%s", text)
	require.NotContains(t, string(behind.Bytes()), "glühbirne-4711")
}
