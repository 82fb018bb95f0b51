package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schematest"
	"waybill.dev/waybill/test/harness"
)

// served are the node types this host executes.
var served = []string{
	"core.noop", "core.identity", "core.delay", "core.fail", "core.channelWrite", "core.approvalGate", "core.clarificationGate", "core.interrupt", "core.ai.callPrompt", "core.ai.structuredOutput",
	"conformance.modelCapability.insufficient", "conformance.requiresMissing", "conformance.cost.emit", "conformance.secret.echo",
	"core.conformance.hold", "core.conformance.side-effect", "core.subWorkflow",
}

// fixtureIDs are the published fixtures all of whose node types exist.
func fixtureIDs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "fixtures", "*.json"))
	require.NoError(t, err)
	var ids []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		var d struct {
			ID    string
			Nodes []struct{ TypeID string }
		}
		require.NoError(t, json.Unmarshal(b, &d))
		if !slices.ContainsFunc(d.Nodes, func(n struct{ TypeID string }) bool { return !slices.Contains(served, n.TypeID) }) {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// script is what the mock answers for a fixture's node.
var scripts = map[string]string{
	"conformance-envelope-retry-attempted":           `[{"content":"{\"valid\":"},{"content":"{\"valid\":true}"}]`,
	"conformance-envelope-retry-exhausted":           `[{"content":"{}"},{"content":"{}"},{"content":"{}"}]`,
	"conformance-envelope-truncated":                 `[{"stopReason":"max_tokens","content":"{\"val"},{"content":"{\"valid\":true}"}]`,
	"conformance-envelope-truncation-cap-exhaustion": `[{"stopReason":"max_tokens"},{"stopReason":"max_tokens"},{"stopReason":"max_tokens"},{"stopReason":"max_tokens"}]`,
	"conformance-envelope-refusal":                   `[{"stopReason":"safety","refusalText":"I will not say xyzzy"}]`,
	"conformance-envelope-recovery-applied":          `[{"content":"` + "```json\\n{\\\"result\\\":\\\"ok\\\"}\\n```" + `"}]`,
	"conformance-envelope-nl-to-format-engaged":      `[{"content":"It went well."},{"content":"It went very well."},{"content":"Really well."},{"content":"{\"result\":\"well\"}"}]`,
	"conformance-phase4-nondet-tool":                 `[{"content":"{\"valid\":true}"}]`,
	"conformance-phase4-replay-divergence":           `[{"content":"{\"valid\":true}"}]`,
}

// reliability are the events between node.started and the node's end.
var reliability = map[string]string{
	"conformance-envelope-retry-attempted":           "provider.usage envelope.retry.attempted provider.usage",
	"conformance-envelope-retry-exhausted":           "provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.retry.exhausted cap.breached",
	"conformance-envelope-truncated":                 "provider.usage envelope.truncated envelope.retry.attempted provider.usage",
	"conformance-envelope-truncation-cap-exhaustion": "provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.exhausted cap.breached",
	"conformance-envelope-refusal":                   "provider.usage envelope.refusal",
	"conformance-envelope-recovery-applied":          "provider.usage envelope.recovery.applied",
	"conformance-envelope-nl-to-format-engaged":      "provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.nlToFormat.engaged provider.usage",
}

// asks are the fixtures that wait for somebody: their status meanwhile, the node that
// asks, and what is answered.
var asks = map[string]struct {
	status, node string
	answers      []string
}{
	"conformance-approval":                            {"waiting-approval", "gate", []string{`{"action":"accept"}`}},
	"conformance-clarification":                       {"waiting-input", "ask", []string{`{"answers":{"q1":"blue"}}`}},
	"conformance-interrupt-auth-required":             {"waiting-approval", "gate", []string{`{"action":"accept"}`}},
	"conformance-interrupt-external-event":            {"waiting-external", "wait-for-external", []string{`{"orderId":"fixture-order-1","status":"completed"}`}},
	"conformance-interrupt-parent-child-cancel-child": {"waiting-approval", "child-gate", []string{`{"action":"accept"}`}},
	"conformance-subworkflow-mid-run-mutation-child":  {"waiting-approval", "child-gate", []string{`{"action":"accept"}`}},
	"conformance-subworkflow-mid-run-mutation":        {"waiting-approval", "child-gate", []string{`{"action":"accept"}`}},
	"conformance-interrupt-quorum": {"waiting-approval", "gate", []string{
		`{"action":"accept","voter":"approver-1"}`, `{"action":"accept","voter":"approver-2"}`, `{"action":"accept","voter":"approver-3"}`,
	}},
}

// answer waits until a run asks, and answers it.
func answer(t *testing.T, c *harness.Client, id, runID string) {
	t.Helper()
	want, ok := asks[id]
	if !ok {
		return
	}
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
		return err == nil && strings.Contains(string(a.Body), `"status":"`+want.status+`"`)
	}, 10*time.Second, 20*time.Millisecond, "the run waits for an answer")
	runID = asker(t, c, runID)
	for i, value := range want.answers {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/interrupts/"+want.node, `{"resumeValue":`+value+`}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "answer %d: %s", i, a.Body)
	}
}

// request is the body that starts a fixture, and the status it ends with.
func request(id string) (body, status, code string) {
	status = "completed"
	switch id {
	case "conformance-identity":
		body = `,"inputs":{"payload":{"n":9007199254740993,"list":[1,null,{"x":"y"}]}}`
	case "conformance-idempotent":
		body = `,"inputs":{"nonce":"n"}`
	case "conformance-delay":
		body = `,"inputs":{"delayMs":200}`
	case "conformance-cancellable":
		body, status = `,"inputs":{"delayMs":60000}`, "cancelled"
	case "conformance-dispatch-cancellable-child", "conformance-interrupt-parent-child-cancel":
		status = "cancelled"
	case "conformance-cap-breach":
		body, status, code = `,"configurable":{"recursionLimit":3}`, "failed", "recursion_limit_exceeded"
	case "conformance-run-duration-breach":
		body, status, code = `,"inputs":{"delayMs":30000},"configurable":{"runTimeoutMs":1000}`, "failed", "run_timeout"
	case "conformance-stream-text", "conformance-mcp-tool-roundtrip":
		body = `,"configurable":{"mockProvider":{"id":"stream-text","config":{"tokens":["Hel","lo"," world"]}}}`
	case "conformance-replay-side-effect":
		body = `,"inputs":{"delayMs":200}`
	case "conformance-model-capability-insufficient", "conformance-capability-missing":
		status, code = "failed", "capability_not_provided"
	case "conformance-failure":
		status, code = "failed", "conformance_test_failure"
	case "conformance-dispatch-deterministic-fail-child":
		status, code = "failed", "hvmap_1b_failed_fixture"
	case "conformance-envelope-retry-exhausted":
		status, code = "failed", "envelope_invalid"
	case "conformance-envelope-truncation-cap-exhaustion":
		status, code = "failed", "envelope_truncation_unrecoverable"
	case "conformance-envelope-refusal":
		status, code = "failed", "envelope_refusal"
	}
	return `{"workflowId":"` + id + `"` + body + `}`, status, code
}

func TestFixtures_AdvertiseExactlyWhatCanRun(t *testing.T) {
	_, c := seamHost(t)
	a, err := c.Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
	require.NoError(t, err)
	var d struct{ Fixtures []string }
	require.NoError(t, a.JSON(&d))
	require.Equal(t, fixtureIDs(t), d.Fixtures)
	require.NoError(t, harness.LoadSchemas(t).Validate("capabilities.schema.json", a.Body))
}

func TestFixtures_RunAsTheirDescriptionsSay(t *testing.T) {
	_, c := seamHost(t)
	schemas := harness.LoadSchemas(t)
	// One after the other: scripts are queued by node id, and fixtures share ids.
	for _, id := range fixtureIDs(t) {
		t.Run(id, func(t *testing.T) {
			if s, ok := scripts[id]; ok {
				program(t, c, s)
			}
			body, status, code := request(id)
			runID := start(t, c, body)
			if status == "cancelled" {
				a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/cancel", `{"reason":"test"}`)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			}
			answer(t, c, id, runID)
			events, snap := finish(t, c, schemas, runID)
			require.Equal(t, status, snap.Status, "%v", names(events))
			if code != "" {
				require.Equal(t, code, snap.Error.Code)
				require.NotContains(t, snap.Error.Message, "xyzzy", "refusal text stays in its event")
			}
			if want, ok := reliability[id]; ok {
				require.Equal(t, want, between(events))
				if status == "failed" {
					require.Equal(t, []string{"node.failed", "run.failed"}, names(events)[len(events)-2:], "the node's end follows, then the run's")
				}
			}
			if id == "conformance-identity" {
				require.JSONEq(t, `{"n":9007199254740993,"list":[1,null,{"x":"y"}]}`, string(snap.Variables["payload"]))
			}
		})
	}
}

func program(t *testing.T, c *harness.Client, script string) {
	t.Helper()
	for _, node := range []string{"structured-call", "nondet", "call", "tool", "ai"} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", `{"nodeId":"`+node+`","program":`+script+`}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
}

// between are the events after the last node.started and before the node's end.
func between(events []harness.Event) string {
	var out []string
	for _, e := range events {
		switch e.Type {
		case "node.started":
			out = nil
		case "node.completed", "node.failed":
			return strings.Join(out, " ")
		default:
			out = append(out, e.Type)
		}
	}
	return strings.Join(out, " ")
}

func TestTruncation_DoublesTheBudgetOnTheWire(t *testing.T) {
	_, c := seamHost(t)
	program(t, c, scripts["conformance-envelope-truncated"])
	_, err := c.Finish(within(t, 20*time.Second), start(t, c, `{"workflowId":"conformance-envelope-truncated"}`))
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/host/sample/test/mock-ai/last-dispatch-budget?nodeId=structured-call", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"maxTokens":100}`, string(a.Body))
}

func TestSeams_NeedTheFlagAndAKey(t *testing.T) {
	_, c := seamHost(t)
	anonymous := *c
	anonymous.Key = ""
	a, err := anonymous.Do(t.Context(), http.MethodGet, "/v1/host/sample/node-catalog", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, a.Status)
	plain := harness.Start(t)
	a, err = plain.Client("dev-key").Do(t.Context(), http.MethodGet, "/v1/host/sample/node-catalog", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Status)
}
