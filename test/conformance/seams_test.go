package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

const seams = "/v1/host/sample/"

// seamAddresses are the seams whose features this host has.
var seamAddresses = []struct{ method, path, body string }{
	{http.MethodPost, "envelope/accept", `{"envelope":{}}`},
	{http.MethodGet, "node-catalog", ""},
	{http.MethodPost, "test/mock-ai/program", `{"nodeId":"x","program":[]}`},
	{http.MethodPost, "test/mock-ai/reset", `{}`},
	{http.MethodGet, "test/mock-ai/last-dispatch-budget?nodeId=x", ""},
	{http.MethodGet, "test/runs/ghost/events", ""},
	{http.MethodGet, "test/otel/spans?runId=ghost", ""},
	{http.MethodPost, "test/capability-toggle", `{"reset":true}`},
	{http.MethodPost, "test/llm-prompt-wrap", `{"payload":"x"}`},
	{http.MethodPost, "test/evaluate-model-capability-gate", `{"module":{},"activeProvider":"p","activeModel":"m"}`},
	{http.MethodPost, "governance/approval-gate", `{"scenario":"grant","principal":"p"}`},
	{http.MethodPost, "test/emit-provider-usage", `{"runId":"r-usage","payload":{"provider":"p","model":"m","inputTokens":1,"outputTokens":2}}`},
	{http.MethodPost, "test/emit-envelope-reliability", `{"runId":"r-rel","type":"envelope.recovery.applied","payload":{"nodeId":"n","path":"custom"}}`},
	{http.MethodPost, "test/emit-envelope", `{"runId":"r-env","envelope":{}}`},
	{http.MethodPost, "test/synthesize-model-capability-event", `{"runId":"r-cap","module":{},"activeProvider":"p","activeModel":"m"}`},
	{http.MethodPost, "test/llm-cache-key", `{"provider":"p","model":"m","messages":[]}`},
	{http.MethodPost, "test/idempotency/concurrent-claim", `{}`},
	{http.MethodPost, "prompt/resolve", `{"kind":"system","node":{"nodeId":"n"}}`},
}

func TestSeams_NeedTheFlag(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	h := harness.Start(t)
	for _, key := range []string{"", "dev-key"} {
		for _, at := range seamAddresses {
			a := do(t, h.Client(key), at.method, seams+at.path, at.body)
			require.Equal(t, http.StatusNotFound, a.Status, at.path)
		}
	}
	var d map[string]any
	require.NoError(t, do(t, h.Client(""), http.MethodGet, wellKnown, "").JSON(&d))
	require.NotContains(t, d, "testing")
	require.NotContains(t, d, "observability", "it lists the seams only")
	require.NotContains(t, d, "fixtures")
	require.Equal(t, []any{}, d["modelCapabilities"].(map[string]any)["advertised"], "sample/sample-1 neither sees nor hears, and the type that requires something else is the suite's")
	a := do(t, h.Client("dev-key"), http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"x"},"configurable":{"ai.provider":"mock"}}`)
	require.Equal(t, "validation_error", a.Code(), "nor is the mock provider")
}

func TestSeams_NeedAKey(t *testing.T) {
	t.Parallel()
	for _, at := range seamAddresses {
		for _, key := range []string{"", "unknown"} {
			a := do(t, client(t, key), at.method, seams+at.path, at.body)
			require.Equal(t, http.StatusUnauthorized, a.Status, at.path)
		}
		a := do(t, client(t, otherKey), at.method, seams+at.path, at.body) // a tenant without scripts
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", at.path, a.Body)
		a = do(t, client(t, testKey), http.MethodDelete, seams+at.path, "")
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, a.Status, at.path)
	}
	require.Equal(t, http.StatusNotFound, do(t, client(t, testKey), http.MethodGet, seams+"test/nothing", "").Status)
}

func TestSeams_RejectABadBodyInTheirOwnFormat(t *testing.T) {
	t.Parallel()
	for _, at := range []struct{ method, path, body string }{
		{http.MethodPost, "envelope/accept", `{}`},
		{http.MethodPost, "envelope/accept", `{`},
		{http.MethodPost, "envelope/accept", ``},
		{http.MethodPost, "test/mock-ai/program", `{}`},
		{http.MethodPost, "test/mock-ai/program", `{"nodeId":"","program":[]}`},
		{http.MethodPost, "test/mock-ai/program", `{"nodeId":"x"}`},
		{http.MethodGet, "test/mock-ai/last-dispatch-budget", ""},
		{http.MethodPost, "test/debug-bundle/export", `{}`},
		{http.MethodPost, "test/capability-toggle", `{}`},
		{http.MethodPost, "test/capability-toggle", `{"name":"x","value":"on"}`},
		{http.MethodPost, "test/llm-prompt-wrap", `{}`},
		{http.MethodPost, "test/llm-prompt-wrap", `{"payload":1,"contentTrust":"maybe"}`},
		{http.MethodPost, "test/emit-provider-usage", `{"runId":"r","payload":{"provider":"p"}}`},
		{http.MethodPost, "test/emit-provider-usage", `{"payload":{"provider":"p","model":"m","inputTokens":1,"outputTokens":2}}`},
		{http.MethodPost, "test/emit-envelope-reliability", `{"runId":"r","type":"run.started","payload":{}}`},
		{http.MethodPost, "test/emit-envelope-reliability", `{"runId":"r","type":"envelope.refusal","payload":{"nodeId":"n"}}`},
		{http.MethodPost, "media/put", `{}`},
		{http.MethodPost, "media/put", `{"contentBase64":"%%%"}`},
		{http.MethodPost, "media/put", `{"contentBase64":"AA==","ttlSeconds":-1}`},
	} {
		a := do(t, client(t, testKey), at.method, seams+at.path, at.body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s %s: %s", at.path, at.body, a.Body)
		var e struct {
			Error struct{ Code, Message string }
		}
		require.NoError(t, a.JSON(&e))
		require.Equal(t, "invalid_argument", e.Error.Code)
		require.NotEmpty(t, e.Error.Message)
	}
}

func TestSeams_RejectAnInvalidStopReason(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, testKey), http.MethodPost, seams+"test/mock-ai/program", `{"nodeId":"x","program":[{"stopReason":"bored"}]}`)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
}

func TestSeams_ProgramTheMock(t *testing.T) { //nolint:paralleltest // another test resets all scripts
	c := client(t, testKey)
	const at = seams + "test/mock-ai/"
	budget := func(node string) string {
		return string(do(t, c, http.MethodGet, at+"last-dispatch-budget?nodeId="+node, "").Body)
	}
	require.JSONEq(t, `{"maxTokens":null}`, budget("never-called"))
	a := do(t, c, http.MethodPost, at+"program", `{"nodeId":"mocked-node","program":[
		{"stopReason":"max_tokens","content":"{"},{"content":"{\"ok\":true}","outputTokens":7,"inputTokens":9}]}`)
	require.JSONEq(t, `{"ok":true,"count":2}`, string(a.Body))
	id, events := run(t, c, `{"workflowId":"mocked","configurable":{"maxTokens":30}}`)
	require.Equal(t, "run.started node.started provider.usage envelope.truncated envelope.retry.attempted provider.usage node.completed run.completed",
		strings.Join(names(events), " "))
	require.JSONEq(t, `{"maxTokens":60}`, budget("mocked-node"), "a truncation doubles the budget")
	require.Contains(t, string(events[5].Payload), `"outputTokens":7`)

	a = do(t, c, http.MethodGet, seams+"test/runs/"+id+"/events", "")
	var raw struct{ Events []struct{ Type string } }
	require.NoError(t, a.JSON(&raw))
	require.Len(t, raw.Events, len(events))
	require.NoError(t, do(t, c, http.MethodGet, seams+"test/runs/"+id+"/events?type=provider.usage&nodeId=mocked-node", "").JSON(&raw))
	require.Len(t, raw.Events, 2)
	require.NoError(t, do(t, client(t, otherKey), http.MethodGet, seams+"test/runs/"+id+"/events", "").JSON(&raw))
	require.Empty(t, raw.Events, "another tenant gets nothing")
}

func TestSeams_ListTheNodes(t *testing.T) {
	t.Parallel()
	var d struct{ Nodes []map[string]any }
	require.NoError(t, do(t, client(t, testKey), http.MethodGet, seams+"node-catalog", "").JSON(&d))
	var types []string
	for _, n := range d.Nodes {
		types = append(types, n["typeId"].(string))
		for name, v := range n {
			require.NotNil(t, v, "%s: absent members are omitted, not null", name)
		}
	}
	require.Subset(t, types, []string{"core.noop", "core.identity", "core.delay", "core.fail", "core.ai.callPrompt", "core.ai.structuredOutput"})
}

func TestSeams_RunTheAcceptPipeline(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	envelope := func(typ, payload, correlation string) string {
		return `{"type":"` + typ + `","schemaVersion":1,"envelopeId":"e-` + correlation + `","correlationId":"` + correlation + `","payload":` + payload +
			`,"meta":{"source":"ai-generation","ts":"2026-05-01T12:00:00.000Z"}}`
	}
	good := envelope("error", `{"code":"upstream_failed","message":"no answer"}`, "c-good")
	for _, tc := range []struct{ name, body, status string }{
		{"accepted", `{"envelope":` + good + `}`, "accepted"},
		{"no envelope", `{"envelope":7}`, "invalid"},
		{"an unknown kind", `{"envelope":` + envelope("vendor.acme.ghost", `{}`, "c-kind") + `}`, "gated"},
		{"a payload that does not fit", `{"envelope":` + envelope("error", `{"nope":true}`, "c-payload") + `}`, "invalid"},
		{"a universal kind outside the contract", `{"envelope":` + envelope("error", `{"code":"x","message":"y"}`, "c-universal") + `,"nodeAllowedKinds":[]}`, "accepted"},
		{"outside the contract", `{"envelope":` + envelope("vendor.waybill.ticket.triage", triage, "c-contract") + `,"nodeAllowedKinds":["clarification.request"]}`, "gated"},
		{"over the cap", `{"envelope":` + envelope("error", `{"code":"x","message":"y"}`, "c-cap") + `,"counters":{"envelopesPerTurn":{"current":5,"cap":5}}}`, "breached"},
	} {
		a := do(t, c, http.MethodPost, seams+"envelope/accept", tc.body)
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", tc.name, a.Body)
		var o struct{ Status string }
		require.NoError(t, a.JSON(&o))
		require.Equal(t, tc.status, o.Status, "%s: %s", tc.name, a.Body)
	}
	again := do(t, c, http.MethodPost, seams+"envelope/accept", `{"envelope":`+good+`}`)
	require.Contains(t, string(again.Body), `"accepted"`, "a repeated correlation id is answered from memory")
}
