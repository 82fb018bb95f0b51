package seam

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

const allKinds = `{"systemPromptRef":"prompt:conformance.prompt.writer-system@1.0.0","userPromptRef":"prompt:conformance.prompt.writer-user",
	"schemaHintPromptRef":{"templateId":"conformance.prompt.schema-hint"},
	"fewShotPromptRefs":["prompt:conformance.prompt.few-shot@1.0.0","prompt:conformance.prompt.few-shot-2@1.0.0"]}`

func mockAIOf(t *testing.T, level prompt.Observability) mockAI {
	t.Helper()
	p, err := (&Seams{}).Prompts(model.Prompts{
		Observability: level,
		Redact: func(_ context.Context, _, _ string, _ bool, docs [][]byte) ([][]byte, bool, error) {
			return docs, false, nil
		},
	})
	require.NoError(t, err)
	return mockAI{p}
}

func taskOf(config string) model.Task {
	return model.Task{Tenant: "acme", RunID: "run_1", Input: node.Input{NodeID: "n", Config: json.RawMessage(config)}}
}

// RFC 0029 §B: each reference is resolved, and composed after that (RFC 0027 §E).
func TestMockAI_ResolvesAndComposesEachReference(t *testing.T) {
	t.Parallel()
	m := mockAIOf(t, prompt.Hashed)
	require.Nil(t, m.Check(json.RawMessage(allKinds)))
	res := m.Run(t.Context(), taskOf(allKinds), nil)
	require.Nil(t, res.Err)
	require.Equal(t, wire.Trusted, res.Trust)
	require.Len(t, res.Drafts, 10)
	want := []struct{ kind, ref string }{
		{"system", "prompt:conformance.prompt.writer-system@1.0.0"},
		{"user", "prompt:conformance.prompt.writer-user"},
		{"schema-hint", "prompt:conformance.prompt.schema-hint"},
		{"few-shot", "prompt:conformance.prompt.few-shot@1.0.0"},
		{"few-shot", "prompt:conformance.prompt.few-shot-2@1.0.0"},
	}
	for i, w := range want {
		resolved, composed := res.Drafts[2*i], res.Drafts[2*i+1]
		require.Equal(t, wire.EventAgentPromptResolved, resolved.Type)
		require.JSONEq(t, `{"nodeId":"n","kind":"`+w.kind+`","resolved":"`+w.ref+`","chain":[
			{"layer":"node","source":"`+w.ref+`","applied":true},
			{"layer":"agent-intrinsic","applied":false,"reason":"the node names no agent"},
			{"layer":"workflow-defaults","applied":false,"reason":"no reference at this layer"},
			{"layer":"host-defaults","applied":false,"reason":"no reference at this layer"}]}`, string(resolved.Payload))
		require.Equal(t, wire.EventPromptComposed, composed.Type)
		var p prompt.Payload
		require.NoError(t, json.Unmarshal(composed.Payload, &p))
		require.Len(t, p.Refs, 1)
		require.Contains(t, p.Refs[0], "@1.0.0")
		require.Contains(t, p.Refs[0], w.ref)
		require.Nil(t, p.Composed, "digests only")
	}
	require.Equal(t, res, m.Run(t.Context(), taskOf(allKinds), nil), "another owner records the same")
}

func TestMockAI_FollowsTheLevelOfObservability(t *testing.T) {
	t.Parallel()
	config := `{"systemPromptRef":"prompt:conformance.prompt.writer-system"}`
	res := mockAIOf(t, prompt.Off).Run(t.Context(), taskOf(config), nil)
	require.Len(t, res.Drafts, 1)
	require.Equal(t, wire.EventAgentPromptResolved, res.Drafts[0].Type)
	res = mockAIOf(t, prompt.Full).Run(t.Context(), taskOf(config), nil)
	require.Contains(t, string(res.Drafts[1].Payload), `"systemPrompt":"You write short texts."`)
}

// Without references the prompt is the variable of that name.
func TestMockAI_FallsBackToTheVariable(t *testing.T) {
	t.Parallel()
	task := taskOf(`{}`)
	task.Input.Variables = map[string]json.RawMessage{"prompt": json.RawMessage(`"über"`)}
	res := mockAIOf(t, prompt.Hashed).Run(t.Context(), task, nil)
	require.Empty(t, res.Drafts)
	require.JSONEq(t, `"mock answer to 4 characters"`, string(res.Output.Ports["output"]))
}

func TestMockAI_RejectsUnknownReferences(t *testing.T) {
	t.Parallel()
	m := mockAIOf(t, prompt.Hashed)
	for config, says := range map[string]string{
		`{"systemPromptRef":"prompt:nope"}`: `/config/systemPromptRef: this host has no prompt template "nope"`,
		`{"systemPromptRef":"nope"}`:        `/config/systemPromptRef: want a reference`,
		`{"fewShotPromptRefs":["prompt:conformance.prompt.few-shot","prompt:conformance.prompt.writer-user"]}`: `/config/fewShotPromptRefs/1: prompt:conformance.prompt.writer-user@1.0.0 is a template of kind user`,
		`{"fewShotPromptRefs":7}`: `/config: want systemPromptRef`,
		`{"userPromptRef":{"templateId":"conformance.prompt.writer-user","variableOverrides":{"x":1}}}`: `/config/userPromptRef/variableOverrides/x: `,
	} {
		require.ErrorContains(t, asError(m.Check(json.RawMessage(config))), says)
		res := m.Run(t.Context(), taskOf(config), nil)
		require.ErrorContains(t, asError(res.Err), says)
		require.Empty(t, res.Drafts)
	}
}

// What cannot be redacted is not recorded: the run is delivered again.
func TestMockAI_WaitsForTheRedactor(t *testing.T) {
	t.Parallel()
	m := mockAIOf(t, prompt.Hashed)
	away := errors.New("away")
	m.prompts.Redact = func(context.Context, string, string, bool, [][]byte) ([][]byte, bool, error) { return nil, false, away }
	res := m.Run(t.Context(), taskOf(allKinds), nil)
	require.ErrorIs(t, res.Interrupted, away)
	require.Empty(t, res.Drafts)
}

func asError(e *wire.NodeError) error {
	if e == nil {
		return nil
	}
	return errors.New(e.Code + ": " + e.Message)
}
