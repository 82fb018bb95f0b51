package model_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

const asksForSchema = `{"type":"schema.request","payload":{"envelopeType":"vendor.x.ticket"}}`

// idsOf appends the correlationId of each envelope to ids.
func idsOf(t *testing.T, ids *[]string, accept func(model.AcceptRequest) (model.Outcome, error)) func(model.AcceptRequest) (model.Outcome, error) {
	t.Helper()
	return func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		*ids = append(*ids, e.CorrelationID)
		return accept(req)
	}
}

func TestSchemaRequest_IsAnsweredInTheNextTurnsContext(t *testing.T) {
	t.Parallel()
	var (
		ids    []string
		rounds []int
	)
	r := envelope(t, idsOf(t, &ids, func(req model.AcceptRequest) (model.Outcome, error) {
		rounds = append(rounds, req.SchemaRounds)
		return acceptAll(req)
	}), mock.Entry{Content: asksForSchema}, mock.Entry{Content: `{"a":1}`})

	require.Nil(t, r.result.Err)
	require.Equal(t, "provider.usage accept provider.usage accept", r.names(), "a valid turn is not retried")
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))
	require.NotContains(t, string(r.result.Output.Ports["envelopes"]), "schema.request", "the side channel is not the node's output")
	require.Equal(t, []int{0, 1}, rounds)
	require.NotEqual(t, ids[0], ids[1], "each turn has its own ids")

	const taught = "JSON Schema of the payload of envelopes of type vendor.x.ticket, version 3"
	require.NotContains(t, r.spy.reqs[0].System, taught)
	require.Contains(t, r.spy.reqs[1].System, taught)
	require.True(t, strings.HasPrefix(r.spy.reqs[1].System, r.spy.reqs[0].System), "the schema follows the prompt")
	require.Equal(t, r.spy.reqs[0].Messages, r.spy.reqs[1].Messages)
}

func TestSchemaRequest_RepeatedInASecondTurnIsAnotherEnvelope(t *testing.T) {
	t.Parallel()
	var ids []string
	r := envelope(t, idsOf(t, &ids, acceptAll), mock.Entry{Content: asksForSchema}, mock.Entry{Content: asksForSchema}, mock.Entry{Content: `{"a":1}`})
	require.Nil(t, r.result.Err)
	require.NotEqual(t, ids[0], ids[1])
	require.Equal(t, 1, strings.Count(r.spy.reqs[2].System, "JSON Schema of the payload"), "a schema is added once")
}

func TestSchemaRequest_WithoutAnAnswerExhaustsTheEmission(t *testing.T) {
	t.Parallel()
	r := envelope(t, acceptAll, mock.Entry{Content: asksForSchema}, mock.Entry{Content: asksForSchema}, mock.Entry{Content: asksForSchema})
	require.Len(t, r.spy.reqs, 3)
	require.Equal(t, "envelope_invalid", r.result.Err.Code)
	require.JSONEq(t, `{"nodeId":"n","totalAttempts":3,"finalReason":"type-drift","finalError":"it talks about schemas and holds no answer"}`,
		r.payload(t, wire.EventEnvelopeRetryExhausted))
}

func TestSchemaResponse_IsNeverTheNodesOutput(t *testing.T) {
	t.Parallel()
	r := envelope(t, acceptAll, mock.Entry{
		Content: `[{"type":"schema.response","payload":{"envelopeType":"vendor.x.ticket","ack":true}},{"type":"vendor.x.ticket","payload":{"a":1}}]`,
	})
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))
	require.NotContains(t, string(r.result.Output.Ports["envelopes"]), "schema.response")
}

func TestFragment_IsNoAnswer(t *testing.T) {
	t.Parallel()
	const piece = `{"type":"vendor.x.ticket","payload":{"a":0},"partial":{"isPartial":true,"index":0,"total":2}}`
	whole := `{"type":"vendor.x.ticket","payload":{"a":1},"partial":{"isPartial":false,"index":1,"total":2}}`

	r := envelope(t, acceptAll, mock.Entry{Content: "[" + piece + "," + whole + "]"})
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))

	r = envelope(t, acceptAll, mock.Entry{Content: piece}, mock.Entry{Content: whole})
	require.Nil(t, r.result.Err)
	require.Contains(t, r.names(), "envelope.retry.attempted", "an answer of fragments only is retried")
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))
}

func TestRecordedAnswer_OfALaterTurnIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	var ids []string
	envelope(t, idsOf(t, &ids, acceptAll), mock.Entry{Content: asksForSchema}, mock.Entry{Content: `{"a":1}`})
	require.Len(t, ids, 2)
	asked, res := takenOver(t, map[string]model.Recorded{
		ids[0]: {
			Kind:       "schema.request",
			EnvelopeID: "env_0",
			Payload:    json.RawMessage(`{"envelopeType":"vendor.x.ticket"}`),
		},
		ids[1]: {Kind: "vendor.x.ticket", EnvelopeID: "env_1", Payload: json.RawMessage(`{"a":1}`)},
	})
	require.Empty(t, asked, "no call for a recorded answer")
	require.JSONEq(t, `{"a":1}`, string(res.Output.Ports["output"]))
}

// noKinds is a host that no longer has vendor kinds.
type noKinds struct{ schemas }

func (noKinds) Kind(context.Context, string) (model.Kind, bool, error) {
	return model.Kind{}, false, nil
}

// OpenWOP envelope contract §26 case 23: the executor is lost after the answer was recorded, and
// the host of the next one no longer has the kind.
func TestRecordedAnswer_StaysWhenItsKindIsGone(t *testing.T) {
	t.Parallel()
	var ids []string
	envelope(t, idsOf(t, &ids, acceptAll), mock.Entry{Content: `{"a":1}`})
	require.Len(t, ids, 1)
	asked, res := takenOverWith(t, noKinds{}, map[string]model.Recorded{
		ids[0]: {Kind: "vendor.x.ticket", EnvelopeID: "env_1", Payload: json.RawMessage(`{"a":1}`)},
	})
	require.Nil(t, res.Err)
	require.Empty(t, asked)
	require.JSONEq(t, `{"a":1}`, string(res.Output.Ports["output"]))

	asked, res = takenOverWith(t, noKinds{}, nil)
	require.Empty(t, asked, "no call for a missing kind")
	require.NotNil(t, res.Err)
	require.Equal(t, "unknown_envelope_kind", res.Err.Code)
}

// A node with a contract but no requested kind also ends from its recorded envelopes. A recorded
// schema request or clarification request does not end it.
func TestRecordedAnswer_IsTakenWhereNoKindWasAskedFor(t *testing.T) {
	t.Parallel()
	const ticket, config = "vendor.x.ticket", `{"envelopeContract":{"accepts":["vendor.x.ticket"]},"expectsStreaming":false}`
	for kind, event := range map[string]string{
		ticket:                  "",
		"schema.request":        "provider.usage accept",
		"clarification.request": "provider.usage accept",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var ids []string
			says := mock.Entry{Content: `{"type":"` + kind + `","payload":{"a":1}}`}
			first := execute(t, node.TypeCallPrompt, config, idsOf(t, &ids, acceptAll), says)
			recorded := map[string]model.Recorded{ids[0]: {
				Kind:       kind,
				EnvelopeID: "env_1",
				Payload:    json.RawMessage(`{"a":1}`),
			}}
			again := executeTask(t, model.Task{
				TypeID:   node.TypeCallPrompt,
				Recorded: recorded,
				Input:    node.Input{Config: json.RawMessage(config)},
			}, acceptAll, says)
			if event != "" {
				require.Contains(t, again.names(), event, "a question is no answer")
				return
			}
			require.Empty(t, again.names())
			require.Equal(t, first.result.Output.Ports["output"], again.result.Output.Ports["output"])
		})
	}
}
