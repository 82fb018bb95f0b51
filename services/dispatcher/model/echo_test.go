package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// askOver runs a node over a prompt; its model gives these answers.
func askOver(t *testing.T, typeID, config, prompt string, answers ...string) (rig, []accepted) {
	t.Helper()
	var script []mock.Entry
	for _, text := range answers {
		script = append(script, mock.Entry{Content: text})
	}
	scripts := newScripts()
	p := &spy{Provider: mock.New(scripts)}
	require.NoError(t, scripts.Program(t.Context(), "acme", "n", script))
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3, Multiplier: 2, Timeout: 5 * time.Second,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{Models: reg, Schemas: kindsOfForms, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	var seen []accepted
	j := &journal{accept: func(req model.AcceptRequest) (model.Outcome, error) {
		var e accepted
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		seen = append(seen, e)
		return acceptAll(req)
	}}
	messages, err := json.Marshal([]map[string]string{{"role": "user", "content": prompt}})
	require.NoError(t, err)
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: typeID,
		Input: node.Input{
			NodeID: "n", Config: json.RawMessage(config),
			Ports: map[string]json.RawMessage{"messages": messages},
		},
	}, j)
	require.NoError(t, res.Interrupted)
	return rig{journal: j, spy: p, result: res}, seen
}

// A document of the prompt is the answer only if the model writes no other one, and as the last thing.
func TestEcho_NeverWinsOverAnAnswer(t *testing.T) {
	t.Parallel()
	const (
		source = `{"type":"object","required":["title"],"properties":{"title":{"type":"string"}},"examples":[{"title":"example"}]}`
		prompt = "Improve this:\n{\"title\": \"input\"}\nAnswer like {\"title\":\"shot\"}."
		answer = `{"title":"mine"}`
	)
	echoes := map[string]string{
		"the input": `{"title":"input"}`, "the input, spaced": "{\n  \"title\" : \"input\"\n}", "a shot": `{"title":"shot"}`,
		"an example": `{"title":"example"}`, "the schema": source,
	}
	for name, echo := range echoes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{
				echo + "\n" + answer, answer + "\n" + echo, "```json\n" + answer + "\n```\nYour input was:\n```json\n" + echo + "\n```",
				"You gave me:\n```json\n" + echo + "\n```\nI would say " + answer + " instead.",
			} {
				r, _ := askOver(t, node.TypeStructuredOutput, `{"outputSchema":`+source+`}`, prompt, text)
				require.Nil(t, r.result.Err, text)
				require.Len(t, r.spy.reqs, 1, text)
				require.JSONEq(t, answer, string(r.result.Output.Ports["output"]), text)
			}
			for _, text := range []string{"You gave me\n```json\n" + echo + "\n```\nbut I cannot do that.", "Such as " + echo + " for example."} {
				r, _ := askOver(t, node.TypeStructuredOutput, `{"outputSchema":`+source+`}`, prompt, text, answer)
				require.Nil(t, r.result.Err, text)
				require.Len(t, r.spy.reqs, 2, text)
				require.Contains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), "it repeats a document of the prompt", text)
				require.JSONEq(t, answer, string(r.result.Output.Ports["output"]), text)
			}
		})
	}
}

// A model may choose one of the documents that it got.
func TestEcho_IsTheAnswerIfItIsTheLastWord(t *testing.T) {
	t.Parallel()
	const config = `{"envelopeType":"vendor.x.task","expectsStreaming":false}`
	const prompt = "Choose one:\n{\"title\":\"a\"}\n{\"title\":\"b\"}"
	for _, text := range []string{`{"title":"b"}`, "I choose:\n```json\n{\"title\":\"b\"}\n```", "Here it is:\n\n{\"title\": \"b\"}\n"} {
		r, seen := askOver(t, node.TypeCallPrompt, config, prompt, text)
		require.Nil(t, r.result.Err, text)
		require.Len(t, r.spy.reqs, 1, text)
		require.Len(t, seen, 1, text)
		require.JSONEq(t, `{"title":"b"}`, string(seen[0].Payload), text)
	}
}

// An example of an envelope in the prompt is not one that the model sends.
func TestEcho_OfAnEnvelopeIsNotSent(t *testing.T) {
	t.Parallel()
	const (
		config  = `{"envelopeType":"vendor.x.task","expectsStreaming":false}`
		example = `{"type":"error","payload":{"code":"no_title"}}`
	)
	r, seen := askOver(t, node.TypeCallPrompt, config, "If there is no title, answer "+example, "There is a title, so not "+example+":\n{\"title\":\"a\"}")
	require.Nil(t, r.result.Err)
	require.Len(t, seen, 1)
	require.Equal(t, "vendor.x.task", seen[0].Type)
	r, seen = askOver(t, node.TypeCallPrompt, config, "If there is no title, answer "+example, example)
	require.Nil(t, r.result.Err)
	require.Len(t, seen, 1)
	require.Equal(t, "error", seen[0].Type)
	require.Len(t, r.spy.reqs, 1)
}
