package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The time limit of a model's question and the right to decline it outlive the host.
func TestQuestions_OfAModelSurviveAKill(t *testing.T) {
	t.Parallel()
	needsHost(t)
	schemas := harness.LoadSchemas(t)
	h := harness.StartWith(t, harness.Options{Args: []string{"--test-seams", "--question-timeout", "3s"}})
	c := h.Client("dev-key")
	runs := map[string]string{}
	for id, settings := range map[string]string{"expires": `{}`, "waits": `{"questions":{"timeoutMs":0}}`} {
		flow := one(id, "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","envelopeType":"vendor.waybill.ticket.triage","prompt":"hi","expectsStreaming":false}`)
		put(t, c, strings.NewReplacer(`"id":"gate"`, `"id":"`+id+`"`, `"inputs":{}`, `"inputs":{},"settings":`+settings).Replace(flow))
		script(t, c, id, `{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?"}]}}`)
		runs[id] = start(t, c, `{"workflowId":"`+id+`"}`)
		require.Eventually(t, func() bool { return status(t, c, runs[id]) != "pending" && status(t, c, runs[id]) != "running" }, 30*time.Second, 10*time.Millisecond)
	}
	h.Kill()
	h.Launch()
	c = h.Client("dev-key")
	_, snap := finish(t, c, schemas, runs["expires"])
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, "interrupt_timeout", snap.Error.Code)

	require.Equal(t, "waiting-input", status(t, c, runs["waits"]), "the node has no limit")
	script(t, c, "waits", `{"reasoning":null,"category":"other","priority":"low","language":"en","summary":"s","action":{"kind":"reply","message":"m"}}`)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runs["waits"]+"/interrupts/waits", `{"resumeValue":{"declined":true}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, _ := finish(t, c, schemas, runs["waits"])
	require.Equal(t, "interrupt.resolved clarification.resolved node.resumed provider.usage", strings.Join(names(events)[6:10], " "))
}

// script scripts the answers to a node's next model calls.
func script(t *testing.T, c *harness.Client, nodeID string, texts ...string) {
	t.Helper()
	type entry struct {
		Content string `json:"content"`
	}
	program := []entry{}
	for _, text := range texts {
		program = append(program, entry{text})
	}
	b, err := json.Marshal(map[string]any{"nodeId": nodeID, "program": program})
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", string(b))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
}

// status returns a run's status.
func status(t *testing.T, c *harness.Client, id string) string {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
	require.NoError(t, err)
	var s struct{ Status string }
	require.NoError(t, a.JSON(&s))
	return s.Status
}

// Envelopes that a model sends with its question are in the node's outputs, with their hints, and the model
// sees them when it is called again; also if the host was killed while the run waited.
func TestQuestions_KeepTheEnvelopesSentWithThem(t *testing.T) {
	t.Parallel()
	needsHost(t)
	schemas := harness.LoadSchemas(t)
	h := harness.StartWith(t, harness.Options{Args: []string{"--test-seams", "--prompt-observability", "full"}})
	c := h.Client("dev-key")
	const triage = `{"reasoning":null,"category":"other","priority":"low","language":"en","summary":"%s","action":{"kind":"reply","draft":"m"}}`
	first, last := strings.Replace(triage, "%s", "first", 1), strings.Replace(triage, "%s", "last", 1)
	put(t, c, strings.Replace(one("keeps", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","prompt":"hi","expectsStreaming":false,"envelopeContract":{"accepts":["vendor.waybill.ticket.triage"]}}`), `"id":"gate"`, `"id":"keeps"`, 1))
	script(t, c, "keeps", `[{"type":"vendor.waybill.ticket.triage","payload":`+first+`,"meta":{"label":"A draft","rendering":{"display":"card","title":"Draft"}}},`+
		`{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?"}]}}]`)
	id := start(t, c, `{"workflowId":"keeps"}`)
	require.Eventually(t, func() bool { return status(t, c, id) == "waiting-input" }, 30*time.Second, 10*time.Millisecond)
	h.Kill()
	h.Launch()
	c = h.Client("dev-key")
	script(t, c, "keeps", `{"type":"vendor.waybill.ticket.triage","payload":`+last+`}`)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/interrupts/keeps", `{"resumeValue":{"answers":{"q1":"blue"}}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, _ := finish(t, c, schemas, id)
	var prompts []string
	for _, e := range events {
		switch e.Type {
		case "prompt.composed":
			prompts = append(prompts, string(e.Payload))
		case "node.completed":
			var p struct {
				Outputs struct {
					Output    struct{ Summary string }
					Envelopes []struct {
						Payload struct{ Summary string }
						Meta    json.RawMessage
					}
				}
			}
			require.NoError(t, json.Unmarshal(e.Payload, &p))
			require.Equal(t, "last", p.Outputs.Output.Summary)
			require.Len(t, p.Outputs.Envelopes, 2)
			require.Equal(t, "first", p.Outputs.Envelopes[0].Payload.Summary)
			require.JSONEq(t, `{"label":"A draft","rendering":{"display":"card","title":"Draft"}}`, string(p.Outputs.Envelopes[0].Meta))
			require.Equal(t, "last", p.Outputs.Envelopes[1].Payload.Summary)
		}
	}
	require.Len(t, prompts, 2)
	require.Contains(t, prompts[1], "first")
	require.Contains(t, prompts[1], "do not send them again")
}
