package model_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §14.7: the prose is not recorded. An executor that takes the run over
// during the extra call requests the prose again, with the same invocation id, and converts it. No
// event is recorded twice, and the node has the same result.
func TestResume_MakesTheExtraCallForProseAgain(t *testing.T) {
	t.Parallel()
	retries := []model.Retry{{2, "parse-error", "x"}, {3, "parse-error", "x"}, {0, runstate.ReasonProse, ""}}
	prose, good := mock.Entry{Content: "well, it is"}, mock.Entry{Content: `{"valid":true}`}
	for name, tc := range map[string]struct {
		typeID, config string
		script         []mock.Entry
		events         string
		calls          int
		output         string
	}{
		"a value":           {node.TypeStructuredOutput, valueConfig, []mock.Entry{prose, good}, "provider.usage", 2, `{"valid":true}`},
		"an envelope":       {node.TypeCallPrompt, `{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`, []mock.Entry{prose, good}, "provider.usage accept", 2, `{"valid":true}`},
		"prose once more":   {node.TypeStructuredOutput, valueConfig, []mock.Entry{prose, prose}, "provider.usage envelope.retry.exhausted cap.breached", 2, ""},
		"no prose any more": {node.TypeStructuredOutput, valueConfig, []mock.Entry{good}, "provider.usage", 1, `{"valid":true}`},
		"and it is wrong":   {node.TypeStructuredOutput, valueConfig, []mock.Entry{{Content: "{}"}}, "provider.usage envelope.retry.exhausted cap.breached", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := executeTask(t, model.Task{
				TypeID:  tc.typeID,
				Retries: retries,
				Trust:   wire.Untrusted,
				Input:   node.Input{Config: json.RawMessage(tc.config)},
			}, acceptAll, tc.script...)
			require.Len(t, r.spy.reqs, tc.calls)
			require.Equal(t, tc.events, r.names())
			task := model.Task{Tenant: "acme", RunID: "run_1"}
			task.Input.NodeID = "n"
			for i, req := range r.spy.reqs {
				require.Equal(t, model.InvocationID(task, 2+i, req.Provider+":"+req.Model), req.InvocationID)
			}
			if tc.output == "" {
				require.Equal(t, "envelope_invalid", r.result.Err.Code)
				require.Contains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), `"totalAttempts":3`)
			} else {
				require.Nil(t, r.result.Err)
				require.JSONEq(t, tc.output, string(r.result.Output.Ports["output"]))
			}
			for _, d := range r.result.Drafts {
				require.Equal(t, wire.Untrusted, d.Trust)
			}
		})
	}
}

// The second executor recognizes the extra call by the first one's event.
func TestResume_KnowsTheExtraCallByItsEvent(t *testing.T) {
	t.Parallel()
	prose := mock.Entry{Content: "well, it is"}
	r := value(t, prose, prose, prose, prose)
	s := runstate.New(&wire.RunRecord{})
	s.Apply(wire.Event{Type: wire.EventNodeStarted, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n"}`)})
	for i, d := range r.drafts { // those recorded before the extra call
		s.Apply(wire.Event{Sequence: i + 1, Type: d.Type, NodeID: d.NodeID, Payload: d.Payload})
	}
	var retries []model.Retry
	for _, n := range s.Nodes["n"].Retries {
		retries = append(retries, model.Retry{Attempt: n.Attempt, Reason: n.Reason, Detail: n.Detail})
	}
	again := executeTask(t, model.Task{
		TypeID:  node.TypeStructuredOutput,
		Retries: retries,
		Input:   node.Input{Config: json.RawMessage(valueConfig)},
	}, acceptAll, prose, prose)
	require.Equal(t, 1, strings.Count(r.names(), "envelope.nlToFormat.engaged"))
	require.Equal(t, "provider.usage envelope.retry.exhausted cap.breached", again.names())
	for i := range again.spy.reqs { // the same calls as the first executor's
		require.Equal(t, r.spy.reqs[2+i].InvocationID, again.spy.reqs[i].InvocationID)
		require.Equal(t, r.spy.reqs[2+i].Messages, again.spy.reqs[i].Messages)
	}
}

// A recorded answer of the extra call is used.
func TestResume_TakesTheAnswerOfTheExtraCall(t *testing.T) {
	t.Parallel()
	var ids []string
	prose := mock.Entry{Content: "well"}
	envelope(t, idsOf(t, &ids, acceptAll), prose, prose, prose, mock.Entry{Content: `{"a":1}`})
	require.Len(t, ids, 1)
	r := executeTask(t, model.Task{
		TypeID: node.TypeCallPrompt, Retries: []model.Retry{{0, runstate.ReasonProse, ""}},
		Input: node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
		Recorded: map[string]model.Recorded{ids[0]: {
			Kind:       "vendor.x.ticket",
			EnvelopeID: "env_1",
			Payload:    json.RawMessage(`{"a":1}`),
		}},
	}, acceptAll)
	require.Nil(t, r.result.Err)
	require.Empty(t, r.spy.reqs)
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))
}

// OpenWOP envelope contract §14.3 and §14.5: the next executor makes the announced attempt without
// announcing it again.
func TestResume_MakesTheAttemptThatWasAnnounced(t *testing.T) {
	t.Parallel()
	good, bad := mock.Entry{Content: `{"valid":true}`}, mock.Entry{Content: `{"valid":"no"}`}
	for name, tc := range map[string]struct {
		retries   []model.Retry
		script    []mock.Entry
		want      string
		maxTokens int
		corrected bool
	}{
		"after a truncation":  {[]model.Retry{{2, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 200, false},
		"after two":           {[]model.Retry{{2, "truncation", ""}, {3, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 400, false},
		"after a mistake":     {[]model.Retry{{2, "schema-violation", "want type boolean"}}, []mock.Entry{good}, "provider.usage", 100, true},
		"after one of each":   {[]model.Retry{{2, "schema-violation", "want type boolean"}, {3, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 200, false},
		"with one to go":      {[]model.Retry{{2, "schema-violation", "x"}}, []mock.Entry{bad, good}, "provider.usage envelope.retry.attempted provider.usage", 100, true},
		"with none to go":     {[]model.Retry{{2, "parse-error", "x"}, {3, "parse-error", "x"}}, []mock.Entry{bad}, "provider.usage envelope.retry.exhausted cap.breached", 100, true},
		"with nothing at all": {nil, []mock.Entry{good}, "provider.usage", 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := executeTask(t, model.Task{
				TypeID:  node.TypeStructuredOutput,
				Retries: tc.retries,
				Input:   node.Input{Config: json.RawMessage(valueConfig)},
			}, acceptAll, tc.script...)
			require.Equal(t, tc.want, r.names())
			first := r.spy.reqs[0]
			require.Equal(t, tc.maxTokens, first.MaxTokens)
			require.Len(t, first.Messages, map[bool]int{true: 2, false: 1}[tc.corrected])
			if tc.corrected {
				require.Contains(t, string(first.Messages[1].Content), tc.retries[0].Detail)
			}
			if r.result.Err != nil {
				require.Contains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), `"totalAttempts":3`)
			}
		})
	}
}

// recordedTalk returns the recorded envelopes of turns that requested the schema.
func recordedTalk(t *testing.T, turns int) map[string]model.Recorded {
	t.Helper()
	var ids []string
	script := slices.Repeat([]mock.Entry{{Content: asksForSchema}}, turns)
	envelope(t, idsOf(t, &ids, acceptAll), append(script, mock.Entry{Content: `{"a":1}`})...)
	out := map[string]model.Recorded{}
	for _, id := range ids[:turns] {
		out[id] = model.Recorded{
			Kind:       "schema.request",
			EnvelopeID: "env_" + id,
			Payload:    json.RawMessage(`{"envelopeType":"vendor.x.ticket"}`),
		}
	}
	return out
}

// OpenWOP envelope contract §8: counters are derived from the log, so schema turns of a lost
// executor count.
func TestResume_CountsTheTurnsThatWentByInTalkAboutSchemas(t *testing.T) {
	t.Parallel()
	good, bad := mock.Entry{Content: `{"a":1}`}, mock.Entry{Content: `{"a":1`}
	for name, tc := range map[string]struct {
		turns     int
		retries   []model.Retry
		script    []mock.Entry
		want      string
		corrected bool
	}{
		"one turn":                    {1, nil, []mock.Entry{good}, "provider.usage accept", false},
		"one, and two that are wrong": {1, nil, []mock.Entry{bad, bad}, "provider.usage envelope.retry.attempted provider.usage envelope.retry.exhausted cap.breached", false},
		"one, and another":            {1, nil, []mock.Entry{{Content: asksForSchema}, good}, "provider.usage accept provider.usage accept", false},
		"two":                         {2, nil, []mock.Entry{good}, "provider.usage accept", false},
		"two, and a wrong one":        {2, nil, []mock.Entry{bad}, "provider.usage envelope.retry.exhausted cap.breached", false},
		"before a retry":              {1, []model.Retry{{3, "parse-error", "x"}}, []mock.Entry{good}, "provider.usage accept", true},
		"after a retry":               {1, []model.Retry{{2, "parse-error", "x"}}, []mock.Entry{good}, "provider.usage accept", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := executeTask(t, model.Task{
				TypeID: node.TypeCallPrompt, Retries: tc.retries, Recorded: recordedTalk(t, tc.turns),
				Input: node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
			}, acceptAll, tc.script...)
			require.Equal(t, tc.want, r.names())
			require.Len(t, r.spy.reqs, len(tc.script))
			require.Equal(t, 1, strings.Count(r.spy.reqs[0].System, "JSON Schema of the payload of envelopes of type vendor.x.ticket"), "the requested schema")
			require.Len(t, r.spy.reqs[0].Messages, map[bool]int{true: 2, false: 1}[tc.corrected])
		})
	}
}

// A partly recorded turn is no schema turn. Either it failed and a retry was announced, or its
// executor was lost between its envelopes.
func TestResume_CountsNoTurnTwice(t *testing.T) {
	t.Parallel()
	half := recordedTalk(t, 1)
	for id, r := range half {
		r.Answer.Size = 2
		half[id] = r
	}
	both := mock.Entry{Content: `[` + asksForSchema + `,{"type":"vendor.x.ticket","payload":{"a":1}}]`}
	for name, retries := range map[string][]model.Retry{
		"wrong once":         {{2, "schema-violation", "want x"}},
		"wrong twice":        {{2, "schema-violation", "want x"}, {3, "schema-violation", "want x"}},
		"cut off":            nil,
		"cut off at the end": {{2, "parse-error", "x"}, {3, "parse-error", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			r := executeTask(t, model.Task{
				TypeID: node.TypeCallPrompt, Retries: retries, Recorded: half,
				Input: node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
			}, idsOf(t, &ids, acceptAll), both)
			require.Nil(t, r.result.Err)
			require.Len(t, r.spy.reqs, 1)
			messages := map[bool]int{true: 2, false: 1}[retries != nil]
			require.Len(t, r.spy.reqs[0].Messages, messages, "the announced correction")
			require.Contains(t, half, ids[0], "a repeated envelope has the same id")
		})
	}
}

// The executor is lost after the last turn and before it records the exhaustion.
func TestResume_EndsWhereAllTurnsWentByInTalk(t *testing.T) {
	t.Parallel()
	r := executeTask(t, model.Task{
		TypeID: node.TypeCallPrompt, Retries: []model.Retry{{3, "parse-error", "x"}}, Recorded: recordedTalk(t, 2),
		Input: node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
	}, acceptAll, mock.Entry{Content: `{"a":1}`})
	require.Empty(t, r.spy.reqs)
	require.Equal(t, "envelope.retry.exhausted cap.breached", r.names())
	require.JSONEq(t, `{"nodeId":"n","totalAttempts":3,"finalReason":"type-drift","finalError":"it talks about schemas and holds no answer"}`,
		r.payload(t, wire.EventEnvelopeRetryExhausted))
}

// A partly recorded answer was streamed and its usage recorded. The call is repeated for the rest,
// and no event is recorded twice.
func TestResume_TellsAnAnswerOnceOfWhichAPartIsRecorded(t *testing.T) {
	t.Parallel()
	half := recordedTalk(t, 1)
	for id, r := range half {
		r.Answer.Size, r.Sequence = 2, 4
		half[id] = r
	}
	both := mock.Entry{Content: "```json\n[" + asksForSchema + `,{"type":"vendor.x.ticket","payload":{"a":1}}]` + "\n```"}
	for name, tc := range map[string]struct {
		announced int
		events    string
	}{
		"of this attempt":      {3, "accept accept"},
		"of the one before it": {5, "output.chunk provider.usage envelope.recovery.applied accept accept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := executeTask(t, model.Task{
				TypeID:    node.TypeCallPrompt,
				Recorded:  half,
				Retries:   []model.Retry{{2, "parse-error", "x"}},
				Announced: tc.announced,
				Input:     node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket"}`)},
			}, acceptAll, both)
			require.Nil(t, r.result.Err)
			require.Equal(t, tc.events, r.names())
		})
	}
}
