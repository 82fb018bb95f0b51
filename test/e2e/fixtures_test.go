package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/test/fixture"
	"waybill.dev/waybill/test/harness"
)

// fixtureIDs are the published fixtures that this host carries out.
func fixtureIDs(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, f := range fixture.All(t) {
		if fixture.NotAdvertised[f.ID] == "" {
			ids = append(ids, f.ID)
		}
	}
	return ids
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

// answer waits until a run has a question, and answers it.
func answer(t *testing.T, c *harness.Client, id, runID string) {
	t.Helper()
	want, ok := fixture.Asks[id]
	if !ok {
		return
	}
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
		return err == nil && strings.Contains(string(a.Body), `"status":"`+want.Status+`"`)
	}, time.Minute, 20*time.Millisecond, "the run waits for an answer")
	runID = asker(t, c, runID)
	for i, value := range want.Answers {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/interrupts/"+want.Node, `{"resumeValue":`+value+`}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "answer %d: %s", i, a.Body)
	}
}

// payloadsOf returns the payloads of the events of a type.
func payloadsOf(events []harness.Event, typ string) []string {
	var out []string
	for _, e := range events {
		if e.Type == typ {
			out = append(out, string(e.Payload))
		}
	}
	return out
}

// checkPrompts checks that each reference is resolved at the node's layer, and then composed (RFC 0027 §E,
// RFC 0029 §B).
func checkPrompts(t *testing.T, events []harness.Event, refs ...string) {
	t.Helper()
	var got []string
	for _, e := range events {
		var p struct {
			Resolved string
			Refs     []string
			Chain    []struct {
				Layer, Source string
				Applied       bool
			}
		}
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		switch e.Type {
		case "agent.promptResolved":
			got = append(got, "resolved "+p.Resolved)
			require.Equal(t, "node", p.Chain[0].Layer)
			require.True(t, p.Chain[0].Applied)
			require.Equal(t, p.Resolved, p.Chain[0].Source)
		case "prompt.composed":
			got = append(got, "composed "+strings.Join(p.Refs, " "))
		}
	}
	var want []string
	for _, ref := range refs {
		want = append(want, "resolved "+ref, "composed "+ref)
	}
	require.Equal(t, want, got)
}

// described checks what the descriptions of fixtures say, apart from the end of the run.
var described = map[string]func(t *testing.T, c *harness.Client, events []harness.Event, snap snapshot){
	"conformance-identity": func(t *testing.T, _ *harness.Client, _ []harness.Event, snap snapshot) {
		t.Helper()
		require.JSONEq(t, `{"n":9007199254740993,"list":[1,null,{"x":"y"}]}`, string(snap.Variables["payload"]))
	},
	"conformance-prompt-end-to-end": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		checkPrompts(t, events, "prompt:conformance.prompt.writer-system@1.0.0")
	},
	"conformance-prompt-all-four-kinds": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		checkPrompts(
			t, events, "prompt:conformance.prompt.writer-system@1.0.0", "prompt:conformance.prompt.writer-user@1.0.0",
			"prompt:conformance.prompt.schema-hint@1.0.0", "prompt:conformance.prompt.few-shot@1.0.0", "prompt:conformance.prompt.few-shot-2@1.0.0",
		)
	},
	"conformance-channel-ttl": func(t *testing.T, _ *harness.Client, _ []harness.Event, snap snapshot) {
		t.Helper()
		var left []struct{ Value string }
		require.NoError(t, json.Unmarshal(snap.Variables["events"], &left))
		require.Len(t, left, 1, "the three older entries are dropped")
		require.Equal(t, "d", left[0].Value)
	},
	"conformance-message-reducer": func(t *testing.T, _ *harness.Client, _ []harness.Event, snap snapshot) {
		t.Helper()
		var messages []struct{ MessageID string }
		require.NoError(t, json.Unmarshal(snap.Variables["messages"], &messages))
		require.Len(t, messages, 1, "each id once")
	},
	"conformance-multi-node": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		var order []string
		for _, e := range events[1 : len(events)-1] {
			order = append(order, e.Type+"@"+e.NodeID)
		}
		require.Equal(t, "node.started@a node.completed@a node.started@b node.completed@b node.started@c node.completed@c", strings.Join(order, " "))
	},
	"conformance-subworkflow-parent": func(t *testing.T, _ *harness.Client, _ []harness.Event, snap snapshot) {
		t.Helper()
		require.JSONEq(t, `"child-completed"`, string(snap.Variables["childOutcome"]))
	},
	"conformance-subworkflow-input-mapping": func(t *testing.T, c *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.JSONEq(t, `"prd-1"`, string(childVariables(t, c, events)["receivedPrdId"]))
	},
	"conformance-subworkflow-input-mapping-no-default": func(t *testing.T, c *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.NotContains(t, childVariables(t, c, events), "receivedPrdId", "undefined is neither null nor the child's default")
	},
	"conformance-cap-breach": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.Len(t, payloadsOf(events, "node.completed"), 3)
		require.Contains(t, payloadsOf(events, "cap.breached")[0], `"node-executions"`)
	},
	"conformance-run-duration-breach": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.Contains(t, payloadsOf(events, "cap.breached")[0], `"run-duration"`)
	},
	"conformance-model-capability-insufficient": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.Equal(t, "run.started model.capability.insufficient node.failed run.failed", strings.Join(names(events), " "))
	},
	"conformance-replay-side-effect": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.Contains(t, payloadsOf(events, "log.appended")[0], "logicalInvocationId")
	},
	"conformance-stream-text": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		require.GreaterOrEqual(t, len(payloadsOf(events, "output.chunk")), 3)
	},
	"openwop-smoke-byok-roundtrip": func(t *testing.T, _ *harness.Client, _ []harness.Event, snap snapshot) {
		t.Helper()
		require.Regexp(t, `^\{"secretSha256":"[0-9a-f]{64}","secretLength":\d+\}$`, string(snap.Variables["resolve-secret"]))
	},
	"openwop-smoke-cost-emit": func(t *testing.T, _ *harness.Client, events []harness.Event, _ snapshot) {
		t.Helper()
		for _, e := range events {
			require.NotContains(t, string(e.Payload), "CANARY")
			require.NotContains(t, string(e.Payload), "must-be-dropped")
		}
	},
}

// childVariables returns the variables of the child that a run has started.
func childVariables(t *testing.T, c *harness.Client, events []harness.Event) map[string]json.RawMessage {
	t.Helper()
	var dispatched struct{ ChildRunID string }
	require.NoError(t, json.Unmarshal([]byte(payloadsOf(events, "node.dispatched")[0]), &dispatched))
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+dispatched.ChildRunID, "")
	require.NoError(t, err)
	var child snapshot
	require.NoError(t, a.JSON(&child))
	return child.Variables
}

func TestFixtures_AdvertiseExactlyWhatCanRun(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	a, err := c.Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
	require.NoError(t, err)
	var d struct{ Fixtures []string }
	require.NoError(t, a.JSON(&d))
	require.Equal(t, fixtureIDs(t), d.Fixtures)
	require.NoError(t, harness.LoadSchemas(t).Validate("capabilities.schema.json", a.Body))
	for id := range fixture.Rejected {
		require.NotContains(t, d.Fixtures, id)
		doc, err := os.ReadFile(filepath.Join(schematest.Dir(t), "fixtures", id+".json"))
		require.NoError(t, err)
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", string(doc))
		require.NoError(t, err)
		require.Equal(t, "validation_error", a.Code(), id)
	}
	for id := range fixture.NotAdvertised { // they run, without what this host does not have
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/workflows/"+id, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, id)
	}
}

func TestFixtures_MatchTheirDescriptions(t *testing.T) {
	t.Parallel()
	c := seamHost(t)
	schemas := harness.LoadSchemas(t)
	// Sequential: scripts are queued by node id, and fixtures share ids.
	for _, id := range fixtureIDs(t) {
		t.Run(id, func(t *testing.T) {
			if s, ok := fixture.Scripts[id]; ok {
				program(t, c, s)
			}
			req := fixture.RequestOf(id)
			runID := start(t, c, req.Body(id))
			if req.Status == "cancelled" {
				a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/cancel", `{"reason":"test"}`)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			}
			answer(t, c, id, runID)
			events, snap := finish(t, c, schemas, runID)
			require.Equal(t, req.Status, snap.Status, "%v", names(events))
			if req.Code != "" {
				require.Equal(t, req.Code, snap.Error.Code)
				require.NotContains(t, snap.Error.Message, "xyzzy", "refusal text stays in its event")
			}
			if want, ok := reliability[id]; ok {
				require.Equal(t, want, harness.Between(events))
				if req.Status == "failed" {
					require.Equal(t, []string{"node.failed", "run.failed"}, names(events)[len(events)-2:], "the node's end follows, then the run's")
				}
			}
			if says, ok := described[id]; ok {
				says(t, c, events, snap)
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

func TestTruncation_DoublesTheBudgetOnTheWire(t *testing.T) {
	t.Parallel()
	c := seamHost(t)
	program(t, c, fixture.Scripts["conformance-envelope-truncated"])
	_, err := c.Finish(within(t, time.Minute), start(t, c, `{"workflowId":"conformance-envelope-truncated"}`))
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/host/sample/test/mock-ai/last-dispatch-budget?nodeId=structured-call", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"maxTokens":100}`, string(a.Body))
}

func TestSeams_NeedTheFlagAndAKey(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
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

// The suite's own steps (RFC 0140): a run is cancelled before its effect, and replayed. The replay waits
// no longer than its source, and performs no effect.
func TestFixtures_AReplayOfACancelledRunFailsClosed(t *testing.T) {
	_, c := sharedHost(t)
	runID := start(t, c, `{"workflowId":"conformance-replay-side-effect","inputs":{"delayMs":60000}}`)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/cancel", `{}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	_, err = c.Finish(within(t, 20*time.Second), runID)
	require.NoError(t, err)
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+":fork", `{"mode":"replay"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var f struct{ RunID string }
	require.NoError(t, a.JSON(&f))
	events, snap := finish(t, c, harness.LoadSchemas(t), f.RunID)
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, "replay_source_missing", snap.Error.Code)
	require.Equal(t, "run.started node.started node.completed node.started node.failed run.failed", strings.Join(names(events), " "))
}

// RFC 0022 §B: variables of the parent that change after the child's start do not reach the child.
func TestFixtures_ChildrenKeepTheVariablesOfTheirStart(t *testing.T) {
	_, c := sharedHost(t)
	const variables = "/v1/host/sample/test/runs/"
	runID := start(t, c, `{"workflowId":"conformance-subworkflow-mid-run-mutation"}`)
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
		return err == nil && strings.Contains(string(a.Body), `"status":"waiting-approval"`)
	}, 20*time.Second, 20*time.Millisecond)
	a, err := c.Do(t.Context(), http.MethodPost, variables+runID+"/variables", `{"variables":{"currentPrdId":"mutated-id"}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.JSONEq(t, `{"variables":{"currentPrdId":"mutated-id"}}`, string(a.Body))
	answer(t, c, "conformance-subworkflow-mid-run-mutation", runID)
	events, snap := finish(t, c, harness.LoadSchemas(t), runID)
	require.Equal(t, "completed", snap.Status)
	require.JSONEq(t, `"mutated-id"`, string(snap.Variables["currentPrdId"]))
	require.JSONEq(t, `"seeded-id"`, string(childVariables(t, c, events)["receivedPrdId"]))
}
