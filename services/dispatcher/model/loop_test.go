package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/seam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newScripts returns scripts for the mock provider.
func newScripts() *seam.Scripts { return seam.NewScripts(memory.New()) }

// journal records drafts in memory and answers accepts from a function.
type journal struct {
	mu     sync.Mutex
	drafts []wire.Draft
	frames int
	accept func(model.AcceptRequest) (model.Outcome, error)
	fail   error
}

func (j *journal) Record(_ context.Context, drafts ...wire.Draft) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return j.fail
	}
	j.drafts = append(j.drafts, drafts...)
	j.frames++
	return nil
}

// Accept records an accepted envelope as a draft of the type accept, after its preceding events if
// the outcome says so. A refused envelope or a fragment records nothing.
func (j *journal) Accept(_ context.Context, req model.AcceptRequest) (model.Outcome, error) {
	out, err := j.accept(req)
	if err != nil || out.Status != "accepted" || strings.Contains(string(req.Envelope), `"isPartial":true`) {
		out.Preceded = false
		return out, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if out.Preceded {
		j.drafts = append(j.drafts, req.Preceding...)
	}
	j.drafts = append(j.drafts, wire.Draft{Type: "accept"})
	j.frames++
	return out, nil
}

// acceptAll is a pipeline that accepts every envelope.
func acceptAll(req model.AcceptRequest) (model.Outcome, error) {
	var e struct {
		EnvelopeID string          `json:"envelopeId"`
		Payload    json.RawMessage `json:"payload"`
	}
	err := json.Unmarshal(req.Envelope, &e)
	return model.Outcome{Status: "accepted", EnvelopeID: e.EnvelopeID, Payload: e.Payload, Preceded: true}, err
}

type schemas struct{}

func (schemas) Kind(_ context.Context, name string) (model.Kind, bool, error) {
	if name != "vendor.x.ticket" {
		return model.Kind{}, false, nil
	}
	return model.Kind{Name: name, Version: 3, Schema: json.RawMessage(`{"type":"object"}`)}, true, nil
}

func (schemas) Limits(context.Context) (model.Limits, error) {
	return model.Limits{EnvelopesPerTurn: 5, SchemaRounds: 2, ClarificationRounds: 3}, nil
}

// plain is a scrubber that changes nothing.
type plain struct{}

func (plain) Open(context.Context) (model.Scrub, error) { return plain{}, nil }
func (plain) Push(piece string, _ bool) (string, error) { return piece, nil }
func (plain) Close()                                    {}

// spy records the requests to a provider.
type spy struct {
	*mock.Provider
	mu   sync.Mutex
	reqs []provider.Request
}

func (s *spy) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	s.mu.Lock()
	s.reqs = append(s.reqs, req)
	s.mu.Unlock()
	return s.Provider.Call(ctx, req, emit)
}

type rig struct {
	*journal
	spy    *spy
	result model.Result
}

// names lists the event types in order: the recorded ones, then those of the result.
func (r rig) names() string {
	var out []string
	for _, d := range append(append([]wire.Draft(nil), r.drafts...), r.result.Drafts...) {
		out = append(out, string(d.Type))
	}
	return strings.Join(out, " ")
}

func (r rig) payload(t *testing.T, typ wire.EventType) string {
	t.Helper()
	for _, d := range append(append([]wire.Draft(nil), r.drafts...), r.result.Drafts...) {
		if d.Type == typ {
			return string(d.Payload)
		}
	}
	t.Fatalf("no %s in %s", typ, r.names())
	return ""
}

func execute(t *testing.T, typeID, config string, accept func(model.AcceptRequest) (model.Outcome, error), script ...mock.Entry) rig {
	t.Helper()
	return executeTask(t, model.Task{
		TypeID: typeID,
		Input:  node.Input{Config: json.RawMessage(config)},
	}, accept, script...)
}

func executeTask(t *testing.T, task model.Task, accept func(model.AcceptRequest) (model.Outcome, error), script ...mock.Entry) rig {
	t.Helper()
	scripts := newScripts()
	p := &spy{Provider: mock.New(scripts)}
	require.NoError(t, scripts.Program(t.Context(), "acme", "n", script))
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     5 * time.Second,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: schemas{}, Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	j := &journal{accept: accept}
	task.Tenant, task.RunID, task.Input.NodeID = "acme", "run_1", "n"
	task.Input.Ports = map[string]json.RawMessage{"messages": json.RawMessage(`[{"role":"user","content":"hello"}]`)}
	res := loop.Run(t.Context(), task, j)
	return rig{journal: j, spy: p, result: res}
}

const valueConfig = `{"outputSchema":{"type":"object","required":["valid"],"properties":{"valid":{"type":"boolean"}}}}`

func value(t *testing.T, script ...mock.Entry) rig {
	t.Helper()
	return execute(t, node.TypeStructuredOutput, valueConfig, acceptAll, script...)
}

func envelope(t *testing.T, accept func(model.AcceptRequest) (model.Outcome, error), script ...mock.Entry) rig {
	t.Helper()
	return execute(t, node.TypeCallPrompt, `{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`, accept, script...)
}

// The truth table of OpenWOP envelope contract §14.2 and the orders of §14.5, for a bare value.
func TestLoop_FollowsTheTruthTable(t *testing.T) {
	t.Parallel()
	good, bad := mock.Entry{Content: `{"valid":true}`}, mock.Entry{Content: `{"valid":"no"}`}
	cut := mock.Entry{Content: `{"val`, StopReason: "max_tokens"}
	cases := []struct {
		name   string
		script []mock.Entry
		want   string
		code   string
	}{
		{"clean and valid", []mock.Entry{good}, "provider.usage", ""},
		{"clean, fenced", []mock.Entry{{Content: "```json\n{\"valid\":true}\n```"}}, "provider.usage envelope.recovery.applied", ""},
		{"clean, fenced and invalid, then valid", []mock.Entry{{Content: "```json\n{\"valid\":\"no\"}\n```"}, good}, "provider.usage envelope.recovery.applied envelope.retry.attempted provider.usage", ""},
		{"clean, invalid, then valid", []mock.Entry{bad, good}, "provider.usage envelope.retry.attempted provider.usage", ""},
		{"clean, no JSON, then valid", []mock.Entry{{Content: `{"valid":`}, good}, "provider.usage envelope.retry.attempted provider.usage", ""},
		{"truncated, then valid", []mock.Entry{cut, good}, "provider.usage envelope.truncated envelope.retry.attempted provider.usage", ""},
		{"truncated although valid", []mock.Entry{{Content: `{"valid":true}`, StopReason: "length"}, good}, "provider.usage envelope.truncated envelope.retry.attempted provider.usage", ""},
		{"refused", []mock.Entry{{RefusalText: "no", StopReason: "safety"}}, "provider.usage envelope.refusal", "envelope_refusal"},
		{"refused although valid", []mock.Entry{{Content: `{"valid":true}`, StopReason: "safety"}}, "provider.usage envelope.refusal", "envelope_refusal"},
		{
			"exhausted on schema",
			[]mock.Entry{bad, bad, bad},
			"provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.retry.exhausted cap.breached", "envelope_invalid",
		},
		{
			"exhausted on truncation",
			[]mock.Entry{cut, cut, cut},
			"provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.exhausted cap.breached",
			"envelope_truncation_unrecoverable",
		},
		{
			"prose, saved by the fallback",
			[]mock.Entry{{Content: "well, it is"}, {Content: "valid indeed"}, {Content: "yes it is"}, good},
			"provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.nlToFormat.engaged provider.usage", "",
		},
		{
			"prose, not saved",
			[]mock.Entry{{Content: "well, it is"}, {Content: "valid indeed"}, {Content: "yes it is"}, {Content: "still"}},
			"provider.usage envelope.retry.attempted provider.usage envelope.retry.attempted provider.usage envelope.nlToFormat.engaged provider.usage envelope.retry.exhausted cap.breached", "envelope_invalid",
		},
		{"a stop sequence with a valid answer", []mock.Entry{{Content: `{"valid":true}`, StopReason: "stop_sequence"}}, "provider.usage", ""},
		{"an unknown stop with a valid answer", []mock.Entry{{Content: `{"valid":true}`, StopReason: "meteor"}}, "provider.usage", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := value(t, c.script...)
			require.NoError(t, r.result.Interrupted)
			require.Equal(t, c.want, r.names())
			if c.code == "" {
				require.Nil(t, r.result.Err)
				require.JSONEq(t, `{"valid":true}`, string(r.result.Output.Ports["output"]))
				return
			}
			require.Equal(t, c.code, r.result.Err.Code)
			require.False(t, r.result.Err.Retryable, "the node's policy must not retry it")
		})
	}
}

func TestLoop_TruncationGetsRoomAndNoAdvice(t *testing.T) {
	t.Parallel()
	cut := mock.Entry{Content: "{", StopReason: "max_tokens"}
	r := value(t, cut, cut, mock.Entry{Content: `{"valid":true}`})
	require.Equal(t, []int{100, 200, 400}, []int{r.spy.reqs[0].MaxTokens, r.spy.reqs[1].MaxTokens, r.spy.reqs[2].MaxTokens})
	require.Equal(t, r.spy.reqs[0].Messages, r.spy.reqs[1].Messages, "no corrective fragment")
	require.JSONEq(t, `{"nodeId":"n","provider":"mock","model":"m","stopReason":"max_tokens","partialPayloadAvailable":false,"outputTokenCount":50}`,
		r.payload(t, wire.EventEnvelopeTruncated))
}

func TestLoop_SchemaViolationGetsAdviceAndNoRoom(t *testing.T) {
	t.Parallel()
	const planted = "SECRET-FROM-THE-MODEL"
	r := value(t, mock.Entry{Content: `{"` + planted + `":"` + planted + `"}`}, mock.Entry{Content: `{"valid":true}`})
	require.Equal(t, r.spy.reqs[0].MaxTokens, r.spy.reqs[1].MaxTokens)
	require.Len(t, r.spy.reqs[1].Messages, 2)
	fragment := string(r.spy.reqs[1].Messages[1].Content)
	require.Contains(t, fragment, "valid", "the validator's message")
	require.NotContains(t, fragment, planted, "never text of the model's answer")
	require.NotContains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), planted)
	require.Contains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), `"attempt":2,"reason":"schema-violation"`)
}

func TestLoop_RefusalTextStaysInItsEvent(t *testing.T) {
	t.Parallel()
	r := value(t, mock.Entry{StopReason: "safety", RefusalText: "I will not say xyzzy"})
	require.Contains(t, r.payload(t, wire.EventEnvelopeRefusal), "xyzzy")
	require.NotContains(t, r.result.Err.Message, "xyzzy")
}

func TestLoop_RecoveryTellsPathAndOffsetOnly(t *testing.T) {
	t.Parallel()
	r := value(t, mock.Entry{Content: "Sure! {\"valid\":true} Anything else? {"})
	require.JSONEq(t, `{"nodeId":"n","path":"brace-walker","byteOffset":6}`, r.payload(t, wire.EventEnvelopeRecovery))
}

func TestLoop_ExhaustionBreachesTheSchemaCapOnce(t *testing.T) {
	t.Parallel()
	bad := mock.Entry{Content: `{}`}
	r := value(t, bad, bad, bad)
	require.JSONEq(t, `{"kind":"schema","limit":2,"observed":3,"nodeId":"n"}`, r.payload(t, wire.EventCapBreached))
	require.Contains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), `"totalAttempts":3,"finalReason":"schema-violation"`)
	require.Len(t, r.spy.reqs, 3)
}

func TestLoop_ATransportErrorIsNoEnvelopeFailure(t *testing.T) {
	t.Parallel()
	p, err := mock.Canned("error", json.RawMessage(`{"code":"provider_unavailable","message":"down","retryable":true}`))
	require.NoError(t, err)
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     time.Second,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
	}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
	j := &journal{}
	res := loop.Run(t.Context(), model.Task{TypeID: node.TypeStructuredOutput, Input: node.Input{NodeID: "n", Config: json.RawMessage(valueConfig)}}, j)
	require.Equal(t, "provider_unavailable", res.Err.Code)
	require.True(t, res.Err.Retryable)
	require.Empty(t, j.drafts)
	require.Empty(t, res.Drafts)
}

func TestEnvelope_UsagePrecedesTheAcceptedEnvelope(t *testing.T) {
	t.Parallel()
	var got []model.AcceptRequest
	r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		got = append(got, req)
		return acceptAll(req)
	}, mock.Entry{Content: `{"a":1}`})
	require.Equal(t, "provider.usage accept", r.names())
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))

	var e struct {
		Type          string                     `json:"type"`
		SchemaVersion int                        `json:"schemaVersion"`
		CorrelationID string                     `json:"correlationId"`
		NodeID        string                     `json:"nodeId"`
		Meta          map[string]json.RawMessage `json:"meta"`
	}
	require.NoError(t, json.Unmarshal(got[0].Envelope, &e))
	require.Equal(t, "vendor.x.ticket", e.Type)
	require.Equal(t, 3, e.SchemaVersion)
	require.Equal(t, "n", e.NodeID)
	require.JSONEq(t, `"ai-generation"`, string(e.Meta["source"]))
}

func TestEnvelope_ARefusedPayloadIsRetriedUnderTheSameCorrelation(t *testing.T) {
	t.Parallel()
	var ids []string
	calls := 0
	r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		ids = append(ids, e.CorrelationID)
		if calls++; calls == 1 {
			return model.Outcome{Status: "invalid", Reason: "envelope_invalid: no", Details: []json.RawMessage{json.RawMessage(`{"message":"want b"}`)}}, nil
		}
		return acceptAll(req)
	}, mock.Entry{Content: `{"a":1}`}, mock.Entry{Content: `{"b":1}`})
	require.Equal(t, "provider.usage envelope.retry.attempted provider.usage accept", r.names())
	require.Equal(t, ids[0], ids[1])
	require.Contains(t, string(r.spy.reqs[1].Messages[1].Content), "want b")
}

func TestEnvelope_AModelCannotDeclareItselfTrustedOrChooseItsIds(t *testing.T) {
	t.Parallel()
	var raw string
	envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		raw = string(req.Envelope)
		return acceptAll(req)
	}, mock.Entry{Content: `{"type":"vendor.x.ticket","payload":{},"correlationId":"mine","envelopeId":"mine","meta":{"source":"user","contentTrust":"trusted","ts":"1999-01-01T00:00:00Z"}}`})
	require.NotContains(t, raw, "mine")
	require.NotContains(t, raw, "1999")
	require.NotContains(t, raw, `"user"`)
}

func TestEnvelope_SeveralInOneTurnAreTakenInOrderUnderTheirOwnIds(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var counts []int
	r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		seen[e.CorrelationID] = true
		counts = append(counts, req.TurnCount)
		return acceptAll(req)
	}, mock.Entry{Content: `[{"type":"vendor.x.ticket","payload":{"i":1}},{"type":"vendor.x.ticket","payload":{"i":2}}]`})
	require.Len(t, seen, 2)
	require.Equal(t, []int{0, 1}, counts)
	require.JSONEq(t, `{"i":2}`, string(r.result.Output.Ports["output"]), "the last one")
	require.Contains(t, string(r.result.Output.Ports["envelopes"]), `"i":1`)
}

func TestEnvelope_ABreachRecordsTheCapAndFailsTheNode(t *testing.T) {
	t.Parallel()
	r := envelope(t, func(model.AcceptRequest) (model.Outcome, error) {
		return model.Outcome{Status: "breached", Reason: "envelopesPerTurn 5", CapKind: "envelopes"}, nil
	}, mock.Entry{Content: `{}`})
	require.JSONEq(t, `{"kind":"envelopes","limit":5,"observed":6,"nodeId":"n"}`, r.payload(t, wire.EventCapBreached))
	require.Equal(t, "cap_breached", r.result.Err.Code)
	require.Equal(t, map[string]any{"capKind": "envelopes"}, r.result.Err.Details)
}

func TestEnvelope_AnUnreachableAcceptorInterruptsAndFailsNothing(t *testing.T) {
	t.Parallel()
	down := errors.New("acceptor is down")
	r := envelope(t, func(model.AcceptRequest) (model.Outcome, error) { return model.Outcome{}, down }, mock.Entry{Content: `{}`})
	require.ErrorIs(t, r.result.Interrupted, down)
	require.Nil(t, r.result.Err)
}

func TestText_IsTheAnswerWhenNothingWasAskedFor(t *testing.T) {
	t.Parallel()
	r := execute(t, node.TypeCallPrompt, `{}`, acceptAll, mock.Entry{Content: "just words"})
	require.Equal(t, "output.chunk provider.usage", r.names())
	require.JSONEq(t, `"just words"`, string(r.result.Output.Ports["output"]))
}

func TestRecordedAnswer_IsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	var id string
	first := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		id = e.CorrelationID
		return acceptAll(req)
	}, mock.Entry{Content: `{"a":1}`})
	require.Nil(t, first.result.Err)

	asked, res := takenOver(t, map[string]model.Recorded{id: {Kind: "vendor.x.ticket", EnvelopeID: "env_1", Payload: json.RawMessage(`{"a":1}`)}})
	require.Empty(t, asked, "no call for a recorded answer")
	require.JSONEq(t, `{"a":1}`, string(res.Output.Ports["output"]))
}

// The executor can be lost between the two envelopes of an answer.
func TestRecordedAnswer_IsUsedOnlyIfAllOfItIsThere(t *testing.T) {
	t.Parallel()
	var ids []string
	var parts []wire.AnswerPart
	envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		ids, parts = append(ids, e.CorrelationID), append(parts, req.Answer)
		o, err := acceptAll(req)
		o.Sequence = 10 + len(ids)
		return o, err
	}, mock.Entry{Content: `[{"type":"vendor.x.ticket","payload":{"i":1}},{"type":"vendor.x.ticket","payload":{"i":2}}]`})
	require.Equal(t, []wire.AnswerPart{{Size: 2}, {Size: 2, Index: 1, With: []int{11}}}, parts)
	first := model.Recorded{Kind: "vendor.x.ticket", EnvelopeID: "env_1", Payload: json.RawMessage(`{"i":1}`), Sequence: 11, Answer: parts[0]}
	second := model.Recorded{Kind: "vendor.x.ticket", EnvelopeID: "env_2", Payload: json.RawMessage(`{"i":2}`), Sequence: 12, Answer: parts[1]}

	asked, _ := takenOver(t, map[string]model.Recorded{ids[0]: first})
	require.NotEmpty(t, asked, "the second envelope is not recorded")

	asked, res := takenOver(t, map[string]model.Recorded{ids[0]: first, ids[1]: second})
	require.Empty(t, asked)
	require.JSONEq(t, `{"i":2}`, string(res.Output.Ports["output"]))
	require.JSONEq(t, `[{"type":"vendor.x.ticket","envelopeId":"env_1","payload":{"i":1}},{"type":"vendor.x.ticket","envelopeId":"env_2","payload":{"i":2}}]`,
		string(res.Output.Ports["envelopes"]))
}

// takenOver runs the node with envelopes that a lost executor recorded. It returns the requests to
// the model.
func takenOver(t *testing.T, recorded map[string]model.Recorded) ([]provider.Request, model.Result) {
	t.Helper()
	return takenOverWith(t, schemas{}, recorded)
}

func takenOverWith(t *testing.T, known model.Schemas, recorded map[string]model.Recorded) ([]provider.Request, model.Result) {
	t.Helper()
	p := &spy{Provider: mock.New(newScripts())}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{MaxAttempts: 3, Multiplier: 2, Timeout: time.Second, Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1}},
		model.Deps{Models: reg, Schemas: known, Clock: time.Now})
	res := loop.Run(t.Context(), model.Task{
		RunID: "run_1", TypeID: node.TypeCallPrompt, Recorded: recorded,
		Input: node.Input{NodeID: "n", Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
	}, &journal{})
	return p.reqs, res
}

func TestConfig_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ typeID, config, want string }{
		"wrong type":       {node.TypeCallPrompt, `{"maxTokens":"many"}`, "/config"},
		"unknown provider": {node.TypeCallPrompt, `{"provider":"ghost"}`, `no provider "ghost"`},
		"unknown kind":     {node.TypeCallPrompt, `{"envelopeType":"vendor.no"}`, "vendor.no"},
		"no output schema": {node.TypeStructuredOutput, `{}`, "/config/outputSchema"},
		"unnamed variable": {node.TypeCallPrompt, `{"prompt":"{{ghost}}"}`, "ghost"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := execute(t, c.typeID, c.config, acceptAll)
			require.NotNil(t, r.result.Err)
			require.Contains(t, r.result.Err.Message, c.want)
			require.Empty(t, r.spy.reqs)
		})
	}
}
