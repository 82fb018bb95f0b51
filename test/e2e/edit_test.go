package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// readAndReply is a workflow of two model calls: the second one gets the answer of the first.
const readAndReply = `{"id":"mails","name":"mails","version":"1",
"nodes":[
 {"id":"read","typeId":"core.ai.callPrompt","name":"r","position":{"x":0,"y":0},"config":{"provider":"mock","model":"mock-mini","prompt":"Read {{mail}}"},"inputs":{"mail":{"type":"variable","variableName":"mail"}}},
 {"id":"reply","typeId":"core.ai.callPrompt","name":"w","position":{"x":0,"y":0},"config":{"provider":"mock","model":"mock-mini","prompt":"Answer {{said}}"},"inputs":{"said":{"type":"connection","nodeId":"read","outputKey":"output"}}}],
"edges":[{"id":"e","sourceNodeId":"read","targetNodeId":"reply"}],
"triggers":[],"variables":[{"name":"mail","type":"string","required":true}],"metadata":{},"settings":{}}`

type forkShown struct {
	Fork struct {
		SourceRunID, Only string
		FromSeq           int
		Edits             []struct {
			NodeID  string
			Config  json.RawMessage
			Inputs  []string
			Outputs bool
		}
	}
	Tags []string
}

func forkNode(t *testing.T, c *harness.Client, runID, node, body string, headers ...string) (string, *harness.Answer) {
	t.Helper()
	a := do(t, c, http.MethodPost, "/v1/runs/"+runID+"/nodes/"+node+"/fork", body, headers...)
	var made struct{ RunID string }
	if a.Status == http.StatusCreated {
		require.NoError(t, a.JSON(&made))
	}
	return made.RunID, a
}

func shownFork(t *testing.T, c *harness.Client, runID string) (s forkShown) {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, a.JSON(&s))
	return s
}

func prompts(t *testing.T, events []harness.Event) (texts []string) {
	t.Helper()
	for _, p := range payloads(t, events, "prompt.composed") {
		var x struct{ UserPrompt string }
		require.NoError(t, json.Unmarshal(p, &x))
		texts = append(texts, x.UserPrompt)
	}
	return texts
}

func editHost(t *testing.T) (*harness.Host, *harness.Client, *harness.Schemas, string) {
	t.Helper()
	needsHost(t)
	schemas := harness.LoadSchemas(t)
	h := harness.StartWith(t, harness.Options{Args: []string{"--test-seams", "--prompt-observability", "full"}})
	c := h.Client("dev-key")
	put(t, c, readAndReply)
	script(t, c, "read", "a complaint")
	script(t, c, "reply", "sorry")
	runID := start(t, c, `{"workflowId":"mails","inputs":{"mail":"Broken lamp"}}`)
	finish(t, c, schemas, runID)
	return h, c, schemas, runID
}

// A branch with edited outputs goes on with them, and calls no model for the edited node; so does its replay.
func TestEdit_ABranchGoesOnWithEditedOutputs(t *testing.T) {
	t.Parallel()
	h, c, schemas, runID := editHost(t)
	script(t, c, "reply", "congratulations")
	branch, a := forkNode(t, c, runID, "read", `{"outputs":{"output":"a compliment"},"runOptionsOverlay":{"tags":["edited"]}}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	events, snap := finish(t, c, schemas, branch)
	require.Equal(t, "completed", snap.Status)
	require.Len(t, payloads(t, events, "provider.usage"), 1, "the edited node calls no model")
	require.Equal(t, []string{"Answer a compliment"}, prompts(t, events))
	require.Equal(t, []string{"run.started", "node.started", "node.completed"}, names(events)[:3])

	shown := shownFork(t, c, branch)
	require.Equal(t, runID, shown.Fork.SourceRunID)
	require.Equal(t, 1, shown.Fork.FromSeq)
	require.Equal(t, []string{"edited"}, shown.Tags)
	require.Len(t, shown.Fork.Edits, 1)
	require.True(t, shown.Fork.Edits[0].Outputs)

	h.Kill()
	h.Launch()
	c = h.Client("dev-key")
	require.Equal(t, shown, shownFork(t, c, branch))
	replay := do(t, c, http.MethodPost, "/v1/runs/"+branch+":fork", `{"mode":"replay"}`)
	var made struct{ RunID string }
	require.NoError(t, replay.JSON(&made))
	again, _ := finish(t, c, schemas, made.RunID)
	require.Equal(t, names(events), names(again))
	require.Equal(t, prompts(t, events), prompts(t, again))
}

// A run of one node has the node's recorded inputs, and another prompt.
func TestEdit_ARunOfOneNodeTriesAnotherPrompt(t *testing.T) {
	t.Parallel()
	h, c, schemas, runID := editHost(t)
	script(t, c, "reply", "first", "second")
	key := []string{"Idempotency-Key", "try-1"}
	body := `{"only":true,"config":{"prompt":"Politely answer {{said}}"}}`
	try, a := forkNode(t, c, runID, "reply", body, key...)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	repeated, _ := forkNode(t, c, runID, "reply", body, key...)
	require.Equal(t, try, repeated)
	h.Kill() // the run may not have been claimed: the next process executes the same edit
	h.Launch()
	c = h.Client("dev-key")
	script(t, c, "reply", "first", "second") // the scripts of the seam are not kept
	events, snap := finish(t, c, schemas, try)
	require.Equal(t, "completed", snap.Status)
	for _, text := range prompts(t, events) {
		require.Equal(t, "Politely answer a complaint", text)
	}
	require.NotContains(t, strings.Join(nodesOf(events), " "), "read")
	shown := shownFork(t, c, try)
	require.Equal(t, "reply", shown.Fork.Only)
	require.JSONEq(t, `{"provider":"mock","model":"mock-mini","prompt":"Politely answer {{said}}"}`, string(shown.Fork.Edits[0].Config))

	other, a := forkNode(t, c, try, "reply", `{"only":true,"inputs":{"said":"an offer"}}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	events, _ = finish(t, c, schemas, other)
	require.Equal(t, []string{"Politely answer an offer"}, prompts(t, events), "a run of one node can be tried again with its edits")
}

func nodesOf(events []harness.Event) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.NodeID)
	}
	return ids
}

func TestEdit_RefusesWithAReason(t *testing.T) {
	t.Parallel()
	_, c, _, runID := editHost(t)
	for body, want := range map[string]string{
		`{}`:                                       "/config: want config, inputs or outputs",
		`{"outputs":[]}`:                           "/outputs",
		`{"outputs":{},"only":true}`:               "cannot be combined",
		`{"only":true,"config":{"promt":"x"}}`:     "/config/promt",
		`{"only":true,"config":{"model":7}}`:       "/config/model",
		`{"only":true,"config":{"temperature":9}}`: "/config/temperature",
		`{"only":true,"nonesuch":1}`:               "nonesuch",
	} {
		_, a := forkNode(t, c, runID, "read", body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", body, a.Body)
		require.Contains(t, string(a.Body), want, body)
	}
	_, a := forkNode(t, c, runID, "ghost", `{"outputs":{}}`)
	require.Equal(t, http.StatusNotFound, a.Status, "%s", a.Body)
	_, a = forkNode(t, c, "run_ghost", "read", `{"outputs":{}}`)
	require.Equal(t, http.StatusNotFound, a.Status, "%s", a.Body)
}
