package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted returns a node with a scripted model.
func scripted(id, config string) string {
	return node(id, "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","prompt":"hi",`+config+`}`, "{}")
}

// judged returns a node whose answer has a schema.
func judged(id string) string {
	return node(id, "core.ai.structuredOutput", `{"provider":"mock","model":"mock-mini","outputSchema":{"type":"object","required":["result"],"properties":{"result":{"type":"string"}}}}`,
		`{"messages":{"type":"static","value":[{"role":"user","content":"go"}]}}`)
}

// canned returns a node that the run's mock provider answers.
func canned(id, settings string) string {
	return more(node(id, "core.ai.callPrompt", `{"prompt":"hi"}`, "{}"), `"settings":`+settings)
}

var pixel = base64.StdEncoding.EncodeToString([]byte("\x89PNG...."))

var modelFeatures = []feature{
	{
		rule: "§5.4 a node is tried again after a wait, as often as its retries say",
		doc:  definition("feature-retries", canned("retried", `{"retry":{"maxRetries":2,"backoffMs":10,"multiplier":3}}`), "", "", ""),
		with: `"configurable":{"mockProvider":{"id":"error","config":{"code":"provider_unavailable","message":"down","retryable":true}}}`,
		want: "node.retried@retried node.retried@retried node.failed@retried",
		code: "provider_unavailable",
	},
	{
		rule: "§5.4 a node that takes longer than its time fails",
		doc:  definition("feature-node-timeout", canned("slow", `{"timeoutMs":80}`), "", "", ""),
		with: `"configurable":{"mockProvider":{"id":"stream-text","config":{"tokens":["late"],"delayMsPerToken":5000}}}`,
		want: "node.failed@slow",
		code: "node_timeout",
	},
	{
		rule: "§14.6 an answer that is wrapped is recovered",
		doc:  definition("feature-recovery", judged("recovered"), "", "", ""),
		says: map[string][]string{"recovered": {"```json\n{\"result\":\"ok\"}\n```"}},
		want: "envelope.recovery.applied@recovered recovered",
	},
	{
		rule: "§14.7 prose is put into the schema by one further call",
		doc:  definition("feature-prose", judged("prose"), "", "", ""),
		says: map[string][]string{"prose": {"It went well.", "It went very well.", "Really well.", `{"result":"well"}`}},
		want: "envelope.retry.attempted@prose envelope.retry.attempted@prose envelope.nlToFormat.engaged@prose prose",
	},
	{
		rule: "§19.2 a prompt of templates is recorded before the model call",
		doc: definition("feature-prompt", node("composed", "core.ai.callPrompt", `{"provider":"sample","model":"sample-1","userPromptRef":"prompt:conformance.prompt.trust-marker@1.0.0"}`,
			`{"userPayload":{"type":"static","value":"a mail"}}`), "", "", ""),
		want: "prompt.composed@composed composed",
	},
	{
		rule: "§17 a small asset is recorded within its event",
		doc:  definition("feature-media", scripted("paints", `"envelopeContract":{"accepts":["media.image"]}`), "", "", ""),
		says: map[string][]string{"paints": {`{"type":"media.image","payload":{"base64":"` + pixel + `","bytes":8,"mimeType":"image/png"}}`}},
		want: "artifact.created@paints paints",
	},
}

func TestFeatures_OfModels(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, f := range modelFeatures {
		t.Run(f.rule, func(t *testing.T) {
			t.Parallel()
			f.shows(t, c)
		})
	}
}

// OpenWOP envelope contract §14.8: a refusal is final.
func TestFeatures_ARefusalIsFinal(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := register(t, c, definition("feature-refusal", judged("refuses"), "", "", ""))
	a := do(t, c, http.MethodPost, seams+"test/mock-ai/program", `{"nodeId":"refuses","program":[{"stopReason":"safety","refusalText":"I will not say xyzzy"}]}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	runID, events := run(t, c, `{"workflowId":"`+id+`"}`)
	require.Equal(t, "envelope.refusal@refuses node.failed@refuses", path(events))
	require.Equal(t, "envelope_refusal", read(t, c, runID).Error.Code)
}

// OpenWOP host contract §5.9: expired entries are dropped at the next write.
func TestFeatures_AChannelDropsExpiredEntries(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := register(t, c, definition("feature-ttl", join(write("a", "log", `"a"`), node("wait", "core.delay", `{"ms":120}`, "{}"), write("b", "log", `"b"`)), chain("a", "wait", "b"), "",
		`,"channels":{"log":{"reducer":"append","ttlMs":60}}`))
	runID, events := run(t, c, `{"workflowId":"`+id+`"}`)
	require.Equal(t, "a wait b", path(events))
	held := string(read(t, c, runID).Variables["log"])
	require.Contains(t, held, `"value":"b"`)
	require.NotContains(t, held, `"value":"a"`)
}

// OpenWOP envelope contract §18: a model creates a form, and the run continues with the submitted
// values.
func TestFeatures_AFormOfAModelIsSubmitted(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := register(t, c, definition("feature-form", join(
		scripted("draws", `"envelopeType":"ui.a2ui-surface"`),
		node("form", "core.interrupt", `{"kind":"custom","data":{"customKind":"ui.a2ui-surface"}}`, "{}"), node("then", "core.identity", "{}", `{"why":{"type":"connection","nodeId":"form","outputKey":"why"}}`),
	), chain("draws", "form", "then"), "", ""))
	program(t, c, "draws", `{"type":"ui.a2ui-surface","payload":`+returnForm+`}`)
	runID, _ := suspended(t, c, id, "waiting-external")
	require.Equal(t, http.StatusBadRequest, answer(t, c, runID, "form", `{"who":"x"}`).Status, "no such field")
	a := answer(t, c, runID, "form", `{"why":"too small"}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, err := c.Finish(within(t, patience), runID)
	require.NoError(t, err)
	require.Equal(t, "artifact.created@draws draws node.suspended@form interrupt.requested@form interrupt.resolved@form node.resumed@form form then", path(events))
	require.JSONEq(t, `"too small"`, string(read(t, c, runID).Variables["why"]))
}

// OpenWOP host contract §7.2: a branch has its source's history and continues independently.
func TestFeatures_ABranchContinuesIndependently(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := register(t, c, definition("feature-branch", join(noop("a"), node("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"]}`, "{}"),
		set("yes", "said", `"yes"`)), join(chain("a", "gate"), edge("gate", "yes")), "", ""))
	runID, _ := suspended(t, c, id, "waiting-approval")
	require.Equal(t, http.StatusOK, answer(t, c, runID, "gate", `{"action":"accept"}`).Status)
	source, err := c.Finish(within(t, patience), runID)
	require.NoError(t, err)
	for _, e := range source {
		if e.Type != "interrupt.resolved" && e.Type != "node.completed" {
			continue
		}
		f := fork(t, c, runID, fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, e.Sequence))
		await(t, c, f.RunID, patience, "waiting-approval", "completed")
		if read(t, c, f.RunID).Status == "waiting-approval" {
			require.Equal(t, http.StatusOK, answer(t, c, f.RunID, "gate", `{"action":"reject"}`).Status)
		}
		events, err := c.Finish(within(t, patience), f.RunID)
		require.NoError(t, err)
		require.Equal(t, names(source[:e.Sequence]), names(events[:e.Sequence]), "%s", strings.Join(names(events), " "))
	}
}
