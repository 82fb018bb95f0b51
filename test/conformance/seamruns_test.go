package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// RFC 0150 §B: of executors that reach one effect at the same time, with one id for it, exactly one
// performs it.
func TestConcurrentClaim_OneExecutorPerformsTheEffect(t *testing.T) {
	t.Parallel()
	c := client(t, otherKey)
	for body, executors := range map[string]int{`{}`: 2, `{"executors":2}`: 2, `{"executors":5}`: 5, `{"executors":16}`: 16} {
		for range 3 {
			var got struct {
				RunID, LogicalInvocationID string
				MintedIDs                  []string
				Attempted, Delivered       int
			}
			askSeam(t, c, http.MethodPost, "test/idempotency/concurrent-claim", body, &got)
			require.Equal(t, executors, got.Attempted)
			require.Len(t, got.MintedIDs, executors)
			for _, id := range got.MintedIDs {
				require.Equal(t, got.LogicalInvocationID, id)
			}
			require.Equal(t, 1, got.Delivered)
			events, err := c.Finish(within(t, patience), got.RunID)
			require.NoError(t, err)
			require.Equal(t, "run.started node.started log.appended node.completed run.completed", strings.Join(names(events), " "))
			require.Contains(t, string(events[2].Payload), got.LogicalInvocationID)
			require.Equal(t, "run_not_found", do(t, client(t, testKey), http.MethodGet, "/v1/runs/"+got.RunID, "").Code())
		}
	}
	for _, body := range []string{`{"executors":1}`, `{"executors":17}`, `{"executors":-1}`, `{"executors":"2"}`, `{"executors":2,"x":1}`, `[]`} {
		a := do(t, c, http.MethodPost, seams+"test/idempotency/concurrent-claim", body)
		require.Equal(t, http.StatusBadRequest, a.Status, body)
		require.Contains(t, string(a.Body), "invalid_argument")
	}
}

// variablesOf is the seam of a run's variables.
func variablesOf(runID string) string { return "test/runs/" + runID + "/variables" }

func TestVariables_ChangeWhileARunIsLive(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"wait-two","inputs":{"delayMs":1500}}`).RunID
	await(t, c, id, patience, "running")
	var got struct{ Variables map[string]json.RawMessage }
	askSeam(t, c, http.MethodGet, variablesOf(id), "", &got)
	require.JSONEq(t, `1500`, string(got.Variables["delayMs"]))
	askSeam(t, c, http.MethodPost, variablesOf(id), `{"variables":{"b":{"x":[1]},"a":12345678901234567890,"n":null}}`, &got)
	require.Equal(t, `12345678901234567890`, string(got.Variables["a"]))
	require.JSONEq(t, `{"x":[1]}`, string(got.Variables["b"]))
	askSeam(t, c, http.MethodPost, variablesOf(id), `{"variables":{"a":1}}`, &got)
	askSeam(t, c, http.MethodPost, variablesOf(id), `{"variables":{}}`, &got)
	require.JSONEq(t, `1`, string(got.Variables["a"]))

	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "completed", read(t, c, id).Status, "its timer fires after the changes")
	var changed []string
	for _, e := range events {
		if e.Type == "variable.changed" {
			changed = append(changed, string(e.Payload))
		}
	}
	require.Len(t, changed, 4)
	require.JSONEq(t, `{"name":"a","next":12345678901234567890}`, changed[0])
	require.JSONEq(t, `{"name":"a","previous":12345678901234567890,"next":1}`, changed[3])
	require.Equal(t, common(events), common(forkEvents(t, c, id, `{"mode":"replay"}`)), "a replay repeats the changes")

	for name, tc := range map[string]struct {
		key, run, body, code string
		status               int
	}{
		"an ended run":          {testKey, id, `{"variables":{"a":2}}`, "run_terminal", http.StatusConflict},
		"another tenant's":      {otherKey, id, `{"variables":{"a":2}}`, "run_not_found", http.StatusNotFound},
		"no run":                {testKey, "ghost", `{"variables":{"a":2}}`, "run_not_found", http.StatusNotFound},
		"no variables":          {testKey, id, `{}`, "invalid_argument", http.StatusBadRequest},
		"a list":                {testKey, id, `{"variables":[]}`, "invalid_argument", http.StatusBadRequest},
		"an empty name":         {testKey, id, `{"variables":{"":1}}`, "invalid_argument", http.StatusBadRequest},
		"a member that is none": {testKey, id, `{"variables":{},"x":1}`, "invalid_argument", http.StatusBadRequest},
	} {
		a := do(t, client(t, tc.key), http.MethodPost, seams+variablesOf(tc.run), tc.body)
		require.Equal(t, tc.status, a.Status, "%s: %s", name, a.Body)
		require.Contains(t, string(a.Body), tc.code, name)
	}
	require.Equal(t, http.StatusNotFound, do(t, client(t, otherKey), http.MethodGet, seams+variablesOf(id), "").Status)
	require.Equal(t, http.StatusMethodNotAllowed, do(t, c, http.MethodDelete, seams+variablesOf(id), "").Status)
}

// short is a workflow in the short form of the suite.
func short(id, nodes string) string { return fmt.Sprintf(`{"workflowId":%q,"nodes":[%s]}`, id, nodes) }

// seeding is a node with a non-empty inputMapping, as the suite writes it.
const seeding = `{"nodeId":"subwf-1","typeId":"core.subWorkflow","config":{"childWorkflowId":"some-child","inputMapping":{"receivedPrdId":"currentPrdId"}}}`

func TestWorkflowsSeam_RegistersTheShortForm(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := "short-" + strings.ToLower(idOf(t))
	doc := short(id, `{"nodeId":"one","typeId":"core.noop"},{"nodeId":"two","typeId":"core.identity","config":{}}`)
	for range 2 { // registering again is no conflict
		a := do(t, c, http.MethodPost, seams+"workflows", doc)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		require.JSONEq(t, fmt.Sprintf(`{"workflowId":%q,"nodeCount":2}`, id), string(a.Body))
	}
	_, events := run(t, c, fmt.Sprintf(`{"workflowId":%q}`, id))
	require.Equal(t, "run.started node.started node.completed node.started node.completed run.completed", strings.Join(names(events), " "))
	require.Equal(t, "one", events[1].NodeID, "nodes without edges follow each other")
	require.Equal(t, "workflow_not_found", do(t, client(t, otherKey), http.MethodGet, "/v1/workflows/"+id, "").Code())

	for name, tc := range map[string]struct {
		key, body, code string
		status          int
	}{
		"no scope":              {readerKey, doc, "forbidden", http.StatusForbidden},
		"a node that is none":   {testKey, short("bad", `{"nodeId":"x","typeId":"core.orchestrator.supervisor"}`), "capability_required", http.StatusBadRequest},
		"no nodes":              {testKey, short("bad", ``), "validation_error", http.StatusBadRequest},
		"a config that is none": {testKey, short("bad", `{"nodeId":"x","typeId":"core.delay","config":{"delayMss":1}}`), "validation_error", http.StatusBadRequest},
		"another member":        {testKey, `{"workflowId":"bad","nodes":[],"x":1}`, "validation_error", http.StatusBadRequest},
		"no JSON":               {testKey, `{`, "validation_error", http.StatusBadRequest},
	} {
		a := do(t, client(t, tc.key), http.MethodPost, seams+"workflows", tc.body)
		require.Equal(t, tc.status, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, tc.code, a.Code(), name)
	}
}

// RFC 0022 §C: a host without the capability rejects the member at registration, over every way.
func TestToggle_OfInputMappingTakesEffect(t *testing.T) {
	t.Parallel()
	_, here, there := controlled(t)
	full := definition("seeds", node("call", "core.subWorkflow", `{"workflowId":"kid","inputMapping":{"a":"b"}}`, "{}"), "", `{"name":"b","type":"string"}`, "")
	plain := definition("plain", node("call", "core.subWorkflow", `{"workflowId":"kid","inputMapping":{}}`, "{}"), "", "", "")
	set := func(value string) {
		a := do(t, here, http.MethodPost, seams+"test/capability-toggle", `{"name":"subWorkflow.inputMapping","value":`+value+`}`)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
	refused := func(a *harness.Answer) {
		t.Helper()
		require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
		var e struct {
			Error   string
			Details struct{ RequiredCapability, NodeID string }
		}
		require.NoError(t, a.JSON(&e))
		require.Equal(t, "validation_error", e.Error)
		require.Equal(t, "subWorkflow.inputMapping", e.Details.RequiredCapability)
		require.NotEmpty(t, e.Details.NodeID)
	}
	register := func(c *harness.Client, doc string) *harness.Answer {
		return do(t, c, http.MethodPost, "/v1/workflows", doc)
	}

	set("false")
	refused(do(t, here, http.MethodPost, seams+"workflows", short("hvmap-2-refusal", seeding)))
	refused(register(here, full))
	checked := do(t, here, http.MethodPost, "/v1/workflows:validate", full)
	require.Equal(t, http.StatusOK, checked.Status, "%s", checked.Body)
	require.Contains(t, string(checked.Body), `"/nodes/0/config/inputMapping"`)
	require.Equal(t, http.StatusCreated, register(here, plain).Status, "an empty mapping needs nothing")
	require.Equal(t, http.StatusCreated, register(there, full).Status, "another tenant's host is as it was")
	set("true")
	require.Equal(t, http.StatusCreated, register(here, full).Status)
	set("false")
	refused(register(here, full))
	set("null")
	require.Equal(t, http.StatusOK, register(here, full).Status)
	a := do(t, here, http.MethodPost, seams+"workflows", short("hvmap-2-refusal", seeding))
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.NotContains(t, string(a.Body), "requiredCapability", "childWorkflowId is no member of the config")
}

// RFC 0029 §A: the first layer with a reference wins, and every layer is in the chain.
func TestPromptResolve_WalksTheLayers(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const agent = `"agentManifest":{"agentId":"a","name":"n","systemPromptRef":"prompts/intrinsic.md","promptOverrides":{"system":"prompt:house@1.0.0","user":"prompt:mine"}}`
	const defaults = `"workflowDefaults":{"promptRefs":{"system":"prompt:workflow@1.0.0"}},"hostDefaults":{"system":{"templateId":"host","version":"1.0.0"}}`
	for name, tc := range map[string]struct{ body, resolved, at string }{
		"the node": {
			`{"kind":"system","node":{"nodeId":"w","config":{"systemPromptRef":"prompt:own@2.0.0","agentId":"a"}},` + agent + `,` + defaults + `}`,
			"prompt:own@2.0.0", "node",
		},
		"the agent's own prompt": {
			`{"kind":"system","node":{"nodeId":"w","config":{"agentId":"a"}},"agentBindingsSupported":true,` + agent + `,` + defaults + `}`,
			"prompts/intrinsic.md", "agent-intrinsic",
		},
		"the agent's override": {
			`{"kind":"user","node":{"nodeId":"w","config":{"agentId":"a"}},"agentBindingsSupported":true,` + agent + `,` + defaults + `}`,
			"prompt:mine", "agent-overrides",
		},
		"an unknown agent": {
			`{"kind":"system","node":{"nodeId":"w","config":{"agentId":"other"}},"agentBindingsSupported":true,` + agent + `,` + defaults + `}`,
			"prompt:workflow@1.0.0", "workflow-defaults",
		},
		"an agent on this host": {
			`{"kind":"system","node":{"nodeId":"w","config":{"agentId":"a"}},` + agent + `,` + defaults + `}`,
			"prompt:workflow@1.0.0", "workflow-defaults",
		},
		"the host": {
			`{"kind":"system","node":{"nodeId":"w","config":{}},"hostDefaults":{"system":{"templateId":"host","version":"1.0.0"}}}`,
			"prompt:host@1.0.0", "host-defaults",
		},
		"the first example": {
			`{"kind":"few-shot","node":{"nodeId":"w","config":{"fewShotPromptRefs":["prompt:one","prompt:two"]}}}`, "prompt:one", "node",
		},
		"a schema": {`{"kind":"schema-hint","node":{"nodeId":"w","config":{"schemaHintPromptRef":"prompt:s"}}}`, "prompt:s", "node"},
		"nothing":  {`{"kind":"system","node":{"nodeId":"w","config":{}}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := do(t, c, http.MethodPost, seams+"prompt/resolve", tc.body)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			var got struct {
				NodeID string
				Chain  []struct {
					Layer, Source, Reason string
					Applied               bool
				}
				Resolved   *string
				ResolvedAt *string
			}
			require.NoError(t, a.JSON(&got))
			require.Equal(t, "w", got.NodeID)
			require.GreaterOrEqual(t, len(got.Chain), 4)
			var applied []string
			for _, l := range got.Chain {
				if l.Applied {
					applied = append(applied, l.Layer+" "+l.Source)
				} else {
					require.NotEmpty(t, l.Reason, l.Layer)
				}
			}
			if tc.at == "" {
				require.Nil(t, got.Resolved)
				require.Nil(t, got.ResolvedAt)
				require.Empty(t, applied)
				return
			}
			require.Equal(t, tc.resolved, *got.Resolved)
			require.Equal(t, tc.at, *got.ResolvedAt)
			require.Equal(t, []string{tc.at + " " + tc.resolved}, applied)
		})
	}
	for body, at := range map[string]string{
		`{}`: "/kind", `{"kind":"tone","node":{"nodeId":"n"}}`: "/kind", `{"kind":"system"}`: "/node/nodeId", `{"kind":"system","node":{"nodeId":""}}`: "/node/nodeId",
		`{"kind":"system","node":{"nodeId":"n","config":{"systemPromptRef":"own"}}}`:            "/node/config/systemPromptRef",
		`{"kind":"few-shot","node":{"nodeId":"n","config":{"fewShotPromptRefs":"prompt:one"}}}`: "/node/config/fewShotPromptRefs",
		`{"kind":"system","node":{"nodeId":"n","config":{"agentId":7}}}`:                        "/node/config/agentId",
		`{"kind":"system","node":{"nodeId":"n"},"hostDefaults":{"system":"x"}}`:                 "/hostDefaults/system",
		`{"kind":"system","node":{"nodeId":"n"},"more":1}`:                                      "/more",
	} {
		a := do(t, c, http.MethodPost, seams+"prompt/resolve", body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", body, a.Body)
		require.Contains(t, string(a.Body), "invalid_argument")
		require.Contains(t, string(a.Body), at+": ", body)
	}
}

// RFC 0030 §E: a secret in an envelope's reasoning is in no event.
func TestEmitEnvelope_RecordsTheEventsOfAnEnvelope(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const secret = "sk-emitted-9f1c2d7ab04e"
	emit := func(set obj) (status string, events []obj, raw string) {
		body, err := json.Marshal(set)
		require.NoError(t, err)
		a := do(t, c, http.MethodPost, seams+"test/emit-envelope", string(body))
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		var got struct {
			Outcome struct{ Status string }
			Events  []obj
		}
		require.NoError(t, a.JSON(&got))
		return got.Outcome.Status, got.Events, string(a.Body)
	}
	payload := obj{"questions": []obj{{"id": "q", "question": "Why?"}}, "reasoning": "the key is " + secret}
	set := obj{
		"runId": "emit-" + idOf(t), "nodeId": "writer", "envelope": seamEnvelope(t, "clarification.request", payload),
		"byokCanaries": []obj{{"value": secret, "secretId": "mine"}},
	}
	status, events, raw := emit(set)
	require.Equal(t, "accepted", status, raw)
	require.NotEmpty(t, events)
	require.Equal(t, "writer", events[0]["nodeId"])
	require.NotContains(t, raw, secret)
	logged := do(t, c, http.MethodGet, seams+"test/runs/"+set["runId"].(string)+"/events", "")
	require.Contains(t, string(logged.Body), "clarification.requested")
	require.NotContains(t, string(logged.Body), secret)

	status, events, raw = emit(obj{"runId": set["runId"], "envelope": seamEnvelope(t, "error", obj{}, "correlationId", "other")})
	require.Equal(t, "invalid", status, raw)
	require.Len(t, events, 1)
	require.Equal(t, "node.failed", events[0]["type"])
	for _, body := range []string{`{}`, `{"runId":"r"}`, `{"envelope":{}}`, `{"runId":"r","envelope":{},"x":1}`} {
		require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, seams+"test/emit-envelope", body).Status, body)
	}
}

// RFC 0031 §D: the decision of the gate is an event, with the fallback or the refusal.
func TestSynthesizeGateEvent_RecordsTheDecision(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const at = seams + "test/synthesize-model-capability-event"
	for name, tc := range map[string]struct{ more, event string }{
		"substituted":  {`"module":{"requiredModelCapabilities":["structured-output"],"fallbackModel":{"provider":"openai","model":"f"}},"activeProvider":"local","substitutionSupported":true,"supportedProviders":["openai"]`, "model.capability.substituted"},
		"insufficient": {`"module":{"requiredModelCapabilities":["structured-output"]},"activeProvider":"local"`, "model.capability.insufficient"},
		"dispatched":   {`"module":{"requiredModelCapabilities":["structured-output"]},"activeProvider":"openai"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runID := "gate-" + idOf(t)
			a := do(t, c, http.MethodPost, at, `{"runId":"`+runID+`","nodeId":"n","activeModel":"m","correlationId":"c",`+tc.more+`}`)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			var got struct {
				Outcome struct{ Route string }
				Event   *struct{ Type, NodeID, RunID, CausationID string }
			}
			require.NoError(t, a.JSON(&got))
			var logged struct{ Events []struct{ Type string } }
			askSeam(t, c, http.MethodGet, "test/runs/"+runID+"/events", "", &logged)
			if tc.event == "" {
				require.Equal(t, "dispatch", got.Outcome.Route)
				require.Nil(t, got.Event)
				require.Empty(t, logged.Events)
				return
			}
			require.Equal(t, tc.event, got.Event.Type)
			require.Equal(t, []string{"n", runID, "c"}, []string{got.Event.NodeID, got.Event.RunID, got.Event.CausationID})
			require.Len(t, logged.Events, 1)
			require.Equal(t, tc.event, logged.Events[0].Type)
		})
	}
	for _, body := range []string{`{}`, `{"module":{},"activeProvider":"p","activeModel":"m"}`, `{"runId":"r","module":{}}`, `{"runId":"r","module":{"requiredModelCapabilities":7},"activeProvider":"p","activeModel":"m"}`} {
		require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, at, body).Status, body)
	}
}
