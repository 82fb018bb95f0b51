package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §3.3: the node waits for the answer. Then another emission continues
// with it.
func TestEnvelope_ClarificationLetsTheNodeWait(t *testing.T) {
	t.Parallel()
	var ids []string
	accept := func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		ids = append(ids, e.CorrelationID)
		return acceptAll(req)
	}
	ask := mock.Entry{Content: `{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?"}]}}`}
	r := envelope(t, accept, ask)
	require.True(t, r.result.Waits)
	require.Nil(t, r.result.Err)

	task := model.Task{
		TypeID:         node.TypeCallPrompt,
		Input:          node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
		Clarifications: 1,
		Answered: []model.Answered{{
			Question: json.RawMessage(`{"questions":[{"id":"q1","question":"which?"}]}`),
			Answer:   json.RawMessage(`{"answers":{"q1":"blue"}}`),
		}},
	}
	again := executeTask(t, task, accept, ask)
	require.True(t, again.result.Waits, "another question is allowed")
	require.Len(t, again.spy.reqs, 1)
	msgs := again.spy.reqs[0].Messages
	require.Len(t, msgs, 3)
	require.Equal(t, []string{"user", "assistant", "user"}, []string{msgs[0].Role, msgs[1].Role, msgs[2].Role})
	require.Contains(t, string(msgs[1].Content), "which?")
	require.Contains(t, string(msgs[2].Content), "blue")
	done := executeTask(t, task, accept, mock.Entry{Content: `{"a":1}`})
	require.JSONEq(t, `{"a":1}`, string(done.result.Output.Ports["output"]))
	require.NotEqual(t, ids[0], ids[1], "the second question is another envelope")
}

// The model is told that its questions were declined, and why.
func TestEnvelope_ADeclinedQuestionIsToldToTheModel(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"declined":true}`:                        "The person declined to answer your questions. Go on with the task without the answers.",
		`{"declined":true,"reason":"not decided"}`: "not decided",
	} {
		r := executeTask(t, model.Task{
			TypeID: node.TypeCallPrompt,
			Input:  node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
			Answered: []model.Answered{{
				Question: json.RawMessage(`{"questions":[{"id":"q1","question":"which?"}]}`), Answer: json.RawMessage(answer),
			}},
		}, acceptAll, mock.Entry{Content: `{"a":1}`})
		require.Nil(t, r.result.Err)
		msgs := r.spy.reqs[0].Messages
		require.Contains(t, string(msgs[len(msgs)-1].Content), want)
		require.NotContains(t, string(msgs[len(msgs)-1].Content), "The answers to your questions")
	}
}
