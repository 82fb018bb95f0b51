package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// The edge cases of OpenWOP envelope contract §26 that concern the loop, by their numbers.

func TestEdgeCase01_ATruncatedAnswerThatHappensToBeWholeIsTruncated(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{"max_tokens", "length"} {
		r := value(t, mock.Entry{Content: `{"valid":true}`, StopReason: stop}, mock.Entry{Content: `{"valid":false}`})
		require.Equal(t, "provider.usage envelope.truncated envelope.retry.attempted provider.usage", r.names())
		require.Contains(t, r.payload(t, wire.EventEnvelopeTruncated), `"partialPayloadAvailable":true`)
		require.JSONEq(t, `{"valid":false}`, string(r.result.Output.Ports["output"]), "a truncated answer is never accepted")
	}
	e := envelope(t, acceptAll, mock.Entry{
		Content:    `{"a":1}`,
		StopReason: "max_tokens",
	}, mock.Entry{Content: `{"a":2}`})
	require.Equal(t, "provider.usage envelope.truncated envelope.retry.attempted provider.usage accept", e.names(), "it does not reach the pipeline")
}

func TestEdgeCase02_ASafetyStopWithValidJSONIsARefusal(t *testing.T) {
	t.Parallel()
	for _, r := range []rig{
		value(t, mock.Entry{Content: `{"valid":true}`, StopReason: "safety"}),
		envelope(t, acceptAll, mock.Entry{Content: `{"a":1}`, StopReason: "safety"}),
	} {
		require.Equal(t, "provider.usage envelope.refusal", r.names())
		require.Equal(t, "envelope_refusal", r.result.Err.Code)
		require.False(t, r.result.Err.Retryable)
		require.Len(t, r.spy.reqs, 1)
	}
}

func TestEdgeCase03_ProseAfterValidJSONIsWalkedOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		want   string
		offset string
	}{
		"after":             {`{"valid":true} That is all.`, `{"valid":true}`, `"byteOffset":0`},
		"before and after":  {`So: {"valid":true}. Or {"valid":false}?`, `{"valid":false}`, `"byteOffset":23`},
		"a brace in a text": {`{"valid":true,"why":"a } and \" { within"} }`, `{"valid":true,"why":"a } and \" { within"}`, `"byteOffset":0`},
		"a brace in prose":  {`As {they} say: {"valid":true}!`, `{"valid":true}`, `"byteOffset":15`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := value(t, mock.Entry{Content: tc.text})
			require.Equal(t, "provider.usage envelope.recovery.applied", r.names(), "no attempt is used up")
			require.Contains(t, r.payload(t, wire.EventEnvelopeRecovery), `"path":"brace-walker",`+tc.offset)
			require.JSONEq(t, tc.want, string(r.result.Output.Ports["output"]))
		})
	}
}

func TestEdgeCase04_OfTwoFencedBlocksAValueIsTheLastAndEnvelopesAreAll(t *testing.T) {
	t.Parallel()
	const note, other = "```json\n{\"type\":\"vendor.x.ticket\",\"payload\":{\"i\":1}}\n```", "```\n{\"type\":\"vendor.x.ticket\",\"payload\":{\"i\":2}}\n```"
	v := value(t, mock.Entry{Content: "First ```sh\nnot json\n``` then ```json\n{\"valid\":true}\n``` or ```json\n{\"valid\":false}\n``` but not ```json\n{\"valid\":7}\n```"})
	require.JSONEq(t, `{"valid":false}`, string(v.result.Output.Ports["output"]), "the last that satisfies the schema")
	require.Contains(t, v.payload(t, wire.EventEnvelopeRecovery), `"path":"markdown-fence"`)

	var payloads []string
	e := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		o, err := acceptAll(req)
		payloads = append(payloads, string(o.Payload))
		return o, err
	}, mock.Entry{Content: "Here: " + note + " and " + other})
	require.Nil(t, e.result.Err)
	require.Equal(t, []string{`{"i":1}`, `{"i":2}`}, payloads, "all of them, in order")
}

func TestEdgeCase09_TwoEnvelopesOfOneKindInOneTurnHaveTwoOutcomes(t *testing.T) {
	t.Parallel()
	correlations, envelopes := map[string]bool{}, map[string]bool{}
	r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		var e struct{ CorrelationID, EnvelopeID string }
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		correlations[e.CorrelationID], envelopes[e.EnvelopeID] = true, true
		return acceptAll(req)
	}, mock.Entry{Content: `[{"type":"vendor.x.ticket","payload":{"i":1}},{"type":"vendor.x.ticket","payload":{"i":1}}]`})
	require.Nil(t, r.result.Err)
	require.Len(t, correlations, 2, "although their payloads are equal")
	require.Len(t, envelopes, 2)
}

func TestEdgeCase11_ARepeatedCallAnswersUnderTheSameKey(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for range 2 { // the second executor finds nothing in the log, and calls again
		envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
			var e struct{ CorrelationID, EnvelopeID string }
			require.NoError(t, json.Unmarshal(req.Envelope, &e))
			ids[e.CorrelationID+" "+e.EnvelopeID] = true
			return acceptAll(req)
		}, mock.Entry{Content: `{"a":1}`})
	}
	require.Len(t, ids, 1, "so the log has one outcome")
}

func TestEdgeCase15_TheOffendingValueIsNotRepeatedToTheModel(t *testing.T) {
	t.Parallel()
	const planted = "the-offending-value"
	r := value(t, mock.Entry{Content: `{"valid":"` + planted + `","` + planted + `":1}`}, mock.Entry{Content: `{"valid":true}`})
	require.NotContains(t, string(r.spy.reqs[1].Messages[1].Content), planted, "corrective fragment")
	require.NotContains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), planted, "previousError")

	bad := mock.Entry{Content: `{"valid":"` + planted + `"}`}
	end := value(t, bad, bad, bad)
	require.NotContains(t, end.payload(t, wire.EventEnvelopeRetryExhausted), planted, "finalError")
	require.NotContains(t, end.result.Err.Message, planted)
}

// stopping is a model that ends the run during its call and returns an invalid answer.
type stopping struct {
	stop  func()
	calls int
}

func (*stopping) ID() string { return "mock" }

func (s *stopping) Call(context.Context, provider.Request, func(provider.Delta) error) (provider.Result, error) {
	s.calls++
	s.stop()
	return provider.Result{Text: `{}`, Stop: provider.StopClean, Model: "m"}, nil
}

// interrupted runs a node whose context is cancelled with why during its first call.
func interrupted(t *testing.T, why error) (called *stopping, recorded *journal, result model.Result) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &stopping{stop: func() { cancel(why) }}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     time.Minute,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
	}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
	j := &journal{}
	res := loop.Run(ctx, model.Task{
		TypeID: node.TypeStructuredOutput,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(valueConfig)},
	}, j)
	return p, j, res
}

func TestEdgeCase21_ACancelledRunMakesNoFurtherCall(t *testing.T) {
	t.Parallel()
	cancelled := errors.New("the run is cancelled")
	p, j, res := interrupted(t, cancelled)
	require.Equal(t, 1, p.calls)
	require.ErrorIs(t, res.Interrupted, cancelled)
	require.Empty(t, j.drafts)
	require.Nil(t, res.Err)
}

// ending is a journal that ends the run while a retry is recorded.
type ending struct {
	journal

	end func()
}

func (e *ending) Record(ctx context.Context, drafts ...wire.Draft) error {
	e.end()
	return e.journal.Record(ctx, drafts...)
}

func TestEdgeCase21_ARunCancelledBetweenAttemptsMakesNoFurtherCall(t *testing.T) {
	t.Parallel()
	cancelled := errors.New("the run is cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &stopping{stop: func() {}}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     time.Minute,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
	}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
	res := loop.Run(ctx, model.Task{
		TypeID: node.TypeStructuredOutput,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(valueConfig)},
	},
		&ending{end: func() { cancel(cancelled) }})
	require.Equal(t, 1, p.calls)
	require.ErrorIs(t, res.Interrupted, cancelled)
	require.Nil(t, res.Err)
}

func TestEdgeCase22_TheRunsDeadlineEndsTheLoopWithoutAnEnvelopeError(t *testing.T) {
	t.Parallel()
	p, j, res := interrupted(t, context.DeadlineExceeded)
	require.Equal(t, 1, p.calls)
	require.ErrorIs(t, res.Interrupted, context.DeadlineExceeded, "the fold sets the run's own code")
	require.Nil(t, res.Err)
	for _, d := range append(j.drafts, res.Drafts...) {
		require.False(t, strings.HasPrefix(string(d.Type), "envelope."), d.Type)
	}
}

// A template that names a long value many times must not exhaust the host's memory.
func TestPrompt_OfItsOwnWordsIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	run := func(times int) (*spy, model.Result) {
		scripts := newScripts()
		require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: "done"}}))
		p := &spy{Provider: mock.New(scripts)}
		reg, err := provider.NewRegistry(p)
		require.NoError(t, err)
		loop := model.New(model.Config{
			MaxAttempts: 3,
			Multiplier:  2,
			Timeout:     time.Minute,
			Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
		}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
		return p, loop.Run(t.Context(), model.Task{
			Tenant: "acme",
			RunID:  "run_1",
			TypeID: node.TypeCallPrompt,
			Input: node.Input{
				NodeID: "n",
				Config: json.RawMessage(`{"expectsStreaming":false,"prompt":"` + strings.Repeat("{{long}}", times) + `"}`),
				Ports:  map[string]json.RawMessage{"long": wire.AppendString(nil, strings.Repeat("x", 1<<20))},
			},
		}, &journal{})
	}
	p, res := run(15)
	require.Nil(t, res.Err)
	require.Len(t, p.reqs, 1)
	p, res = run(16)
	require.NotNil(t, res.Err)
	require.Equal(t, "content_too_long", res.Err.Code)
	require.Contains(t, res.Err.Message, `"long"`)
	require.Empty(t, p.reqs)
}

// A violation of JSON itself is reported without a schema path.
func TestCorrection_NamesNoRuleThatThereIsNot(t *testing.T) {
	t.Parallel()
	twice := mock.Entry{Content: `{"valid":true,"valid":true}`}
	r := value(t, twice, twice, twice)
	require.NotNil(t, r.result.Err)
	require.Contains(t, r.result.Err.Message, "two members of this name")
	require.NotContains(t, r.result.Err.Message, "()")
}
