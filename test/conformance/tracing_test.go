package conformance

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
	sampled  = "00-" + traceID + "-" + parentID + "-01"
)

// spansOf waits for the run's span, which ends last, and for the spans of other services. It returns
// the spans of the trace by name.
func spansOf(t *testing.T, c *otlp.Collector, others ...string) map[string][]otlp.Span {
	t.Helper()
	out := map[string][]otlp.Span{}
	require.Eventually(t, func() bool {
		out = map[string][]otlp.Span{}
		for _, s := range c.Spans() {
			if s.TraceID == traceID {
				out[s.Name] = append(out[s.Name], s)
			}
		}
		return !slices.ContainsFunc(append(others, "openwop.run"), func(name string) bool { return len(out[name]) == 0 })
	}, 30*time.Second, 20*time.Millisecond)
	require.Empty(t, c.Refused())
	return out
}

// OpenWOP host contract §10.1.
func TestTracing_TheRunIsAChildOfItsRequest(t *testing.T) {
	t.Parallel()
	for protocol, contentType := range map[string]string{"http/protobuf": "application/x-protobuf", "http/json": "application/json"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			collector := otlp.New()
			t.Cleanup(collector.Close)
			c := client(t, testKey) // skips under -short
			h := harness.Start(t, "--otlp-endpoint", collector.URL(), "--otlp-protocol", protocol, "--trace-ratio", "0")
			c = c.To(h, "dev-key")
			a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"I was charged twice for my lamp."}}`, "Traceparent", sampled)
			require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
			var made created
			require.NoError(t, a.JSON(&made))
			_, err := c.Finish(within(t, patience), made.RunID)
			require.NoError(t, err)

			spans := spansOf(t, collector, "openwop.envelope.accept")
			run := spans["openwop.run"][0]
			require.Equal(t, parentID, run.ParentID)
			require.Contains(t, []string{"waybill", "waybill-dispatcher"}, run.Service, "a separate service has its own name")
			require.Equal(t, made.RunID, run.Attributes["openwop.run_id"])
			require.Equal(t, "triage", run.Attributes["openwop.workflow_id"])
			require.Equal(t, 1, run.Code)
			ai := spans["openwop.node.core.ai.callPrompt"]
			require.Len(t, ai, 1)
			require.Equal(t, run.SpanID, ai[0].ParentID)
			try := spans["openwop.node.core.ai.callPrompt.attempt"][0]
			require.Equal(t, ai[0].SpanID, try.ParentID)
			call := spans["openwop.activity.sample"][0]
			require.Equal(t, try.SpanID, call.ParentID)
			require.Positive(t, call.Attributes["openwop.cost.tokens.output"])
			accept := spans["openwop.envelope.accept"][0]
			require.Equal(t, try.SpanID, accept.ParentID)
			require.Equal(t, "vendor.waybill.ticket.triage", accept.Attributes["openwop.envelope_kind"])
			require.Equal(t, "accepted", accept.Attributes["envelope_outcome"])
			require.Contains(t, collector.ContentTypes(), contentType)
			require.NotContains(t, string(collector.Bytes()), "lamp", "no content in a span")

			// The bundle has the same spans.
			bundle := do(t, c, http.MethodGet, "/v1/runs/"+made.RunID+"/debug-bundle", "")
			for _, s := range []otlp.Span{run, ai[0], try, call, accept} {
				require.Contains(t, string(bundle.Body), s.SpanID, s.Name)
			}
		})
	}
}

func TestTracing_FollowsTheDecisionOfTheRequest(t *testing.T) {
	t.Parallel()
	collector := otlp.New()
	t.Cleanup(collector.Close)
	c := client(t, testKey)
	h := harness.Start(t, "--otlp-endpoint", collector.URL(), "--trace-ratio", "1")
	c = c.To(h, "dev-key")
	for _, trace := range []string{"00-" + traceID + "-" + parentID + "-00", "", sampled} {
		var headers []string
		if trace != "" {
			headers = []string{"Traceparent", trace}
		}
		a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"x"}}`, headers...)
		require.Equal(t, http.StatusCreated, a.Status)
		var made created
		require.NoError(t, a.JSON(&made))
		_, err := c.Finish(within(t, patience), made.RunID)
		require.NoError(t, err)
	}
	require.Len(t, spansOf(t, collector)["openwop.run"], 1, "the run of the sampled request")
	runs := 0
	require.Eventually(t, func() bool {
		runs = 0
		for _, s := range collector.Spans() {
			if s.Name == "openwop.run" {
				runs++
			}
		}
		return runs >= 2
	}, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, 2, runs, "and the run of the request without a decision")
}

func TestTracing_ContinuesTheTraceAfterARestart(t *testing.T) {
	t.Parallel()
	collector := otlp.New()
	t.Cleanup(collector.Close)
	c := client(t, testKey)
	h := harness.Start(t, "--lease", "1s", "--otlp-endpoint", collector.URL())
	c = c.To(h, "dev-key")
	doc := definition("slow", node("a", "core.noop", "{}", "{}")+","+node("b", "core.delay", "{}", `{"delayMs":{"type":"static","value":4000}}`), edge("a", "b"), "", "")
	require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/workflows", doc).Status)
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"slow"}`, "Traceparent", sampled)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var made created
	require.NoError(t, a.JSON(&made))
	await(t, c, made.RunID, patience, "running")
	h.Restart()
	c = c.To(h, "dev-key")
	_, err := c.Finish(within(t, patience), made.RunID)
	require.NoError(t, err)
	spans := spansOf(t, collector)
	require.Len(t, spans["openwop.run"], 1)
	require.Equal(t, parentID, spans["openwop.run"][0].ParentID)
	require.Len(t, spans["openwop.node.core.delay"], 1)
	require.Equal(t, spans["openwop.run"][0].SpanID, spans["openwop.node.core.delay"][0].ParentID)
}

// An unavailable collector, or one that rejects spans, never delays a run.
func TestTracing_AnUnavailableCollectorChangesNothing(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	h := harness.Start(t, "--otlp-endpoint", "http://127.0.0.1:1", "--trace-ratio", "1")
	c = c.To(h, "dev-key")
	_, events := run(t, c, `{"workflowId":"triage","inputs":{"mail":"x"}}`)
	require.Equal(t, "run.completed", events[len(events)-1].Type)
}

// OpenWOP host contract §10.1: `openwop.interrupt` is exported once, by the process that recorded the
// answer.
func TestTracing_SeparatesWaitFromWork(t *testing.T) {
	t.Parallel()
	collector := otlp.New()
	t.Cleanup(collector.Close)
	c := client(t, testKey)
	h := harness.Start(t, "--lease", "1s", "--otlp-endpoint", collector.URL())
	c = c.To(h, "dev-key")
	require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/workflows", asks[0]).Status)
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"approve"}`, "Traceparent", sampled)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var made created
	require.NoError(t, a.JSON(&made))
	await(t, c, made.RunID, patience, "waiting-approval")
	h.Restart()
	c = c.To(h, "dev-key")
	require.Equal(t, http.StatusOK, answer(t, c, made.RunID, "gate", `{"action":"accept"}`).Status)
	_, err := c.Finish(within(t, patience), made.RunID)
	require.NoError(t, err)

	spans := spansOf(t, collector)
	require.Len(t, spans["openwop.interrupt"], 1)
	wait, gate := spans["openwop.interrupt"][0], spans["openwop.node.core.approvalGate"][0]
	require.Equal(t, gate.SpanID, wait.ParentID)
	require.Equal(t, "approval", wait.Attributes["openwop.interrupt_kind"])
	require.NotEmpty(t, wait.Attributes["openwop.interrupt_id"])
	require.EqualValues(t, 1, wait.Attributes["openwop.interrupt_count"])
	require.Contains(t, string(do(t, c, http.MethodGet, "/v1/runs/"+made.RunID+"/debug-bundle", "").Body), wait.SpanID)
}
