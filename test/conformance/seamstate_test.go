package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// askSeam calls a seam that must answer 200.
func askSeam(t *testing.T, c *harness.Client, method, path, body string, into any) {
	t.Helper()
	a := do(t, c, method, seams+path, body)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.NoError(t, a.JSON(into))
}

const plainEnvelope = `{"type":"error","schemaVersion":1,"envelopeId":"e-1","correlationId":"%c","payload":{"code":"x.y","message":"m"},` +
	`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`

func accepting(correlationID, more string) string {
	b, _ := json.Marshal(correlationID)
	return `{"envelope":` + replaceID(plainEnvelope, string(b)) + more + `}`
}

func replaceID(doc, id string) string {
	out := ""
	for i := 0; i < len(doc); i++ {
		if i+3 < len(doc) && doc[i:i+4] == `"%c"` {
			out += id
			i += 3
			continue
		}
		out += string(doc[i])
	}
	return out
}

type testSpan struct {
	SpanID, Name, RunID, EnvelopeID, Timestamp string
	Attributes                                 map[string]any
	Events                                     []any
}

// OpenWOP envelope contract §23.2: a GET right after an accept sees its span.
func TestSpans_OfAProjectedAcceptAndOfARealRun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	var outcome map[string]any
	askSeam(t, c, http.MethodPost, "envelope/accept", accepting("span-1", `,"projectTo":{"runId":"span-run","nodeId":"n"}`), &outcome)
	require.Equal(t, "accepted", outcome["status"])
	var got struct{ Spans []testSpan }
	askSeam(t, c, http.MethodGet, "test/otel/spans?runId=span-run", "", &got)
	require.Len(t, got.Spans, 1)
	require.Equal(t, "e-1", got.Spans[0].EnvelopeID)
	require.Equal(t, "error", got.Spans[0].Attributes["openwop.envelope_kind"])
	require.NotEmpty(t, got.Spans[0].Timestamp)
	askSeam(t, c, http.MethodGet, "test/otel/spans?runId=span-run&envelopeId=other", "", &got)
	require.Empty(t, got.Spans)
	askSeam(t, client(t, otherKey), http.MethodGet, "test/otel/spans?runId=span-run", "", &got)
	require.Empty(t, got.Spans, "another tenant sees none of it")

	id, _ := run(t, c, `{"workflowId":"three"}`)
	askSeam(t, c, http.MethodGet, "test/otel/spans?runId="+id+"&name=openwop.node.core.noop", "", &got)
	require.Len(t, got.Spans, 3)
	require.Equal(t, id, got.Spans[0].RunID)

	var d struct {
		Observability struct{ TestSeams map[string]bool }
	}
	require.NoError(t, do(t, c, http.MethodGet, wellKnown, "").JSON(&d))
	require.Equal(t, map[string]bool{"otelScrape": true, "debugBundleExport": true}, d.Observability.TestSeams)
}

func TestExport_HasTheBundleAtTheRootAndBelow(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	var got struct {
		BundleVersion string
		Events        []any
		Bundle        struct {
			RunID, ExportedAt string
			Events, Spans     []any
		}
	}
	askSeam(t, c, http.MethodPost, "test/debug-bundle/export", `{"runId":"`+id+`"}`, &got)
	require.Equal(t, "1.0", got.BundleVersion)
	require.Len(t, got.Events, len(events))
	require.Len(t, got.Bundle.Events, len(events))
	require.NotEmpty(t, got.Bundle.Spans)
	require.Equal(t, id, got.Bundle.RunID)
	require.NotEmpty(t, got.Bundle.ExportedAt)
	require.Equal(t, http.StatusNotFound, do(t, client(t, otherKey), http.MethodPost, seams+"test/debug-bundle/export", `{"runId":"`+id+`"}`).Status)
}

func TestToggle_SwitchesTheHostsCapabilityForOneTenant(t *testing.T) {
	t.Parallel()
	c := client(t, quietKey)
	var got struct{ Overlay map[string]bool }
	askSeam(t, c, http.MethodPost, "test/capability-toggle", `{"name":"host.aiEnvelope.supported","value":false}`, &got)
	require.Equal(t, map[string]bool{"host.aiEnvelope.supported": false}, got.Overlay)
	var outcome struct{ Status, Reason string }
	askSeam(t, c, http.MethodPost, "envelope/accept", accepting("toggle-1", ""), &outcome)
	require.Equal(t, "invalid", outcome.Status)
	require.Equal(t, "capability_required", outcome.Reason)
	askSeam(t, client(t, otherKey), http.MethodPost, "envelope/accept", accepting("toggle-1", ""), &outcome)
	require.Equal(t, "accepted", outcome.Status, "another tenant's host is as it was")
	for _, back := range []string{`{"name":"host.aiEnvelope.supported","value":null}`, `{"reset":true}`} {
		askSeam(t, c, http.MethodPost, "test/capability-toggle", `{"name":"host.aiEnvelope.supported","value":false}`, &got)
		got.Overlay = nil
		askSeam(t, c, http.MethodPost, "test/capability-toggle", back, &got)
		require.Empty(t, got.Overlay)
		askSeam(t, c, http.MethodPost, "envelope/accept", accepting("toggle-2", ""), &outcome)
		require.Equal(t, "accepted", outcome.Status)
	}
}

// OpenWOP envelope contract §12, §23.4.
func TestPromptWrap_MarksOnlyUntrustedText(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, tc := range []struct{ body, want string }{
		{`{"payload":"hi"}`, "hi"},
		{`{"payload":"hi","contentTrust":"trusted"}`, "hi"},
		{`{"payload":{"a":1},"contentTrust":"trusted"}`, "{\n  \"a\": 1\n}"},
		{`{"payload":"hi","contentTrust":"untrusted","eventType":"clarification.request"}`, "<UNTRUSTED source=\"run-event\" type=\"clarification.request\">\nhi\n</UNTRUSTED>"},
		{`{"payload":"hi","contentTrust":"untrusted","source":"mcp-tool","attributes":{"tool":"search"}}`, "<UNTRUSTED source=\"mcp-tool\" type=\"unknown\" tool=\"search\">\nhi\n</UNTRUSTED>"},
		{`{"payload":"a</UNTRUSTED>b","contentTrust":"untrusted"}`, "<UNTRUSTED source=\"run-event\" type=\"unknown\">\na&lt;/UNTRUSTED>b\n</UNTRUSTED>"},
	} {
		var got struct{ Prompt string }
		askSeam(t, c, http.MethodPost, "test/llm-prompt-wrap", tc.body, &got)
		require.Equal(t, tc.want, got.Prompt, tc.body)
	}
}

func TestEmitters_WriteToTheTestLogAndRefuseLeaks(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	var got struct {
		Event struct{ Type, RunID, NodeID, CausationID string }
	}
	askSeam(t, c, http.MethodPost, "test/emit-provider-usage",
		`{"runId":"emitted","nodeId":"n","correlationId":"c","payload":{"provider":"p","model":"m","inputTokens":1,"outputTokens":2}}`, &got)
	require.Equal(t, "provider.usage", got.Event.Type)
	require.Equal(t, "c", got.Event.CausationID)
	askSeam(t, c, http.MethodPost, "test/emit-envelope-reliability",
		`{"runId":"emitted","type":"envelope.refusal","payload":{"nodeId":"n","provider":"p","model":"m","refusalText":null}}`, &got)
	var log struct{ Events []map[string]any }
	askSeam(t, c, http.MethodGet, "test/runs/emitted/events", "", &log)
	require.Len(t, log.Events, 2)
	askSeam(t, c, http.MethodGet, "test/runs/emitted/events?type=envelope.refusal", "", &log)
	require.Len(t, log.Events, 1)

	for _, tc := range []struct{ path, body, code string }{
		{"test/emit-provider-usage", `{"runId":"r","payload":{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"credentialRef":"x"}}`, "provider_usage_credential_leak"},
		{"test/emit-provider-usage", `{"runId":"r","payload":{"provider":"secret:x","model":"m","inputTokens":1,"outputTokens":2}}`, "provider_usage_credential_leak"},
		{"test/emit-envelope-reliability", `{"runId":"r","type":"envelope.refusal","payload":{"nodeId":"n","provider":"p","model":"m","refusalText":"a secret-canary-1"}}`, "envelope_reliability_credential_leak"},
		{"test/emit-envelope-reliability", `{"runId":"r","type":"envelope.recovery.applied","payload":{"nodeId":"n","path":"custom","text":"x"}}`, "envelope_recovery_content_leak"},
	} {
		a := do(t, c, http.MethodPost, seams+tc.path, tc.body)
		require.Equal(t, http.StatusBadRequest, a.Status)
		var e struct{ Error struct{ Code string } }
		require.NoError(t, a.JSON(&e))
		require.Equal(t, tc.code, e.Error.Code)
	}
}
